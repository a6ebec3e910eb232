"""Endpoints: sources and sinks of a live run, given by name and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tidings.model.errors import UsageError


@dataclass(frozen=True)
class Endpoint:
    """A source or a sink. format: one of ours, or of Spark's; path: what follows the colon; options: of the format."""

    format: str
    path: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def parse(text: str, options: list[str]) -> Endpoint:
        """From `FORMAT` or `FORMAT:PATH`, and options `NAME=VALUE`."""
        format, _, path = text.partition(":")
        if not format:
            raise UsageError(f"{text!r} is no source or sink: say FORMAT or FORMAT:PATH, as files:FOLDER")
        return Endpoint(format, path, parse_options(options))

    def with_defaults(self, **options: str) -> Endpoint:
        """With these options where it has none of the name."""
        return replace(self, options={**options, **self.options})

    def required_path(self, what: str) -> str:
        """The path. UsageError if there is none; what: what it should be."""
        if not self.path:
            raise UsageError(f"{self.format!r} needs {what}: write {self.format}:{what.upper()}")
        return self.path


def parse_options(options: Iterable[str]) -> dict[str, str]:
    """Options from texts `NAME=VALUE`."""
    found = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not name or not sign:
            raise UsageError(f"an option is NAME=VALUE, not {option!r}")
        found[name] = value
    return found
