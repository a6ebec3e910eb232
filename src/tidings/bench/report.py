"""The report of a bench: a line per figure, a column per size, and the growth of each figure over the sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple


@dataclass(frozen=True)
class Figure:
    """One measured number. `key` (dotted) names it in files and between modules, `label` for people."""

    key: str
    label: str
    unit: str
    value: float


class Heading(NamedTuple):
    """What the figures of one measurement have in common: the beginning of their keys and of their labels."""

    key: str
    label: str

    def figure(self, key: str, label: str, unit: str, value: float) -> Figure:
        # Sums and means of arrays are numbers of numpy's, which JSON does not know.
        return Figure(f"{self.key}.{key}", f"{self.label}: {label}", unit, float(value))


@dataclass
class _Line:
    label: str
    unit: str
    values: dict[int, float] = field(default_factory=dict)


class Report:
    """Figures of one run, in the order in which they were first added."""

    def __init__(self, title: str, sizes: Iterable[int], stamp: dict[str, Any]) -> None:
        self.title = title
        self.sizes = tuple(sizes)
        self.stamp = stamp
        self.notes: list[str] = []
        self.is_wrong = False
        """Whether results were compared, and some were wrong."""
        self._lines: dict[str, _Line] = {}

    def add(self, size: int, figures: Iterable[Figure]) -> None:
        for figure in figures:
            line = self._lines.setdefault(figure.key, _Line(figure.label, figure.unit))
            line.values[size] = figure.value

    def value(self, key: str, size: int) -> float | None:
        line = self._lines.get(key)
        return None if line is None else line.values.get(size)

    def growth(self, key: str) -> float | None:
        """The figure at the largest size over the figure at the smallest, where both are there."""
        first, last = self.value(key, self.sizes[0]), self.value(key, self.sizes[-1])
        return None if not first or last is None or len(self.sizes) < 2 else last / first

    def as_json(self) -> dict[str, Any]:
        figures = [
            {
                "key": key,
                "label": line.label,
                "unit": line.unit,
                "values": {str(size): value for size, value in line.values.items()},
                "growth": self.growth(key),
            }
            for key, line in self._lines.items()
        ]
        return {"title": self.title, "stamp": self.stamp, "figures": figures, "notes": self.notes}

    def write(self, out: IO[str]) -> None:
        """As a table with lines on a terminal, as aligned text elsewhere."""
        if out.isatty():
            self._write_table(out)
        else:
            self._write_text(out)
        for note in self.notes:
            out.write(f"{note}\n")

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        head = ["figure", "unit", *(short(size) for size in self.sizes)]
        rows = [
            [line.label, line.unit, *(shown(line.values.get(size)) for size in self.sizes)]
            for line in self._lines.values()
        ]
        if len(self.sizes) > 1:
            head.append(f"{short(self.sizes[-1])} / {short(self.sizes[0])}")
            for key, row in zip(self._lines, rows, strict=True):
                row.append(_ratio(self.growth(key)))
        return head, rows

    def _write_table(self, out: IO[str]) -> None:
        from rich.console import Console
        from rich.table import Table

        head, rows = self._cells()
        table = Table(title=self.title)
        for i, name in enumerate(head):
            table.add_column(name, justify="left" if i < 2 else "right", no_wrap=i >= 1)
        for row in rows:
            table.add_row(*row)
        Console(file=out).print(table)

    def _write_text(self, out: IO[str]) -> None:
        head, rows = self._cells()
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        out.write(f"{self.title}\n")
        for row in [head, *rows]:
            cells = [
                cell.ljust(width) if i < 2 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            out.write("  ".join(cells).rstrip() + "\n")


def short(size: int) -> str:
    """10000 -> 10k, 1000000 -> 1M."""
    for unit, name in ((10**6, "M"), (10**3, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def shown(value: float | None) -> str:
    """Three to four digits that count."""
    if value is None:
        return "-"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"
