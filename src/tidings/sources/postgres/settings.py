"""What a run from PostgreSQL needs to know, read from the options of the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidings.model.errors import UsageError
from tidings.sources.postgres.records import Followed
from tidings.sql import parse_catalog

_OPTIONS = ("dsn", "catalog", "spool", "tables", "schema", "slot", "publication", "start", "max_rows", "max_bytes")
_SPARK_OPTIONS = ("path",)


@dataclass(frozen=True)
class Settings:
    """dsn: connection string, as libpq takes it. spool: a folder that lives as long as the checkpoint.

    start: where a new run begins: `earliest` (a snapshot, then changes), `latest`, or a position of the log.
    max_rows, max_bytes: of a micro-batch; a transaction is never split.
    """

    dsn: str
    catalog: str
    spool: Path
    tables: str = ""
    schema: str = "public"
    slot: str = "tidings"
    publication: str = "tidings"
    start: str = "earliest"
    max_rows: int = 20_000
    max_bytes: int = 32 * 2**20

    @staticmethod
    def of(options: Mapping[str, str]) -> Settings:
        """From the options of the source. UsageError if one is missing, unknown or wrong."""
        given = {name.lower(): value for name, value in options.items() if name.lower() not in _SPARK_OPTIONS}
        unknown = [name for name in given if name not in _OPTIONS]
        if unknown:
            raise UsageError(f"the source postgres has no option {unknown[0]!r}; it has {', '.join(_OPTIONS)}")
        for name, meaning in (
            ("dsn", "the connection string of the server"),
            ("catalog", "the CREATE TABLE statements of the tables to follow"),
            ("spool", "a folder for the snapshot, to be kept with the checkpoint"),
        ):
            if not given.get(name):
                raise UsageError(f"the source postgres needs the option {name!r}: {meaning}")
        more: dict[str, Any] = {
            name: given[name] for name in ("tables", "schema", "slot", "publication") if given.get(name)
        }
        more |= {name: _number(name, given[name]) for name in ("max_rows", "max_bytes") if name in given}
        start = given.get("start") or "earliest"
        if start not in ("earliest", "latest"):
            lsn_of(start)
        return Settings(given["dsn"], given["catalog"], Path(given["spool"]).resolve(), start=start, **more)

    @property
    def has_own_slot(self) -> bool:
        """Whether the run makes its slot. Else it begins at a position of one that is there."""
        return self.start in ("earliest", "latest")

    def followed(self) -> list[Followed]:
        """The tables to follow: those of the catalog, or those that the option `tables` names, in its order."""
        catalog = parse_catalog(self.catalog)
        places = [name.strip().rpartition(".") for name in self.tables.split(",") if name.strip()]
        wanted = [(schema or self.schema, name) for schema, _, name in places]
        if not wanted:
            wanted = [(self.schema, table.name) for table in catalog.tables if table.rows == "values"]
        tables = [(schema, name, catalog.table(name)) for schema, name in wanted]
        return [Followed(schema, name, name, table.column_names, table.key) for schema, name, table in tables]


def lsn_of(text: str) -> int:
    """A position of the log from its text, such as 0/16B3748. UsageError if it is none."""
    high, sign, low = text.partition("/")
    try:
        if not sign:
            raise ValueError
        return (int(high, 16) << 32) + int(low, 16)
    except ValueError:
        raise UsageError(f"{text!r} is neither earliest, latest nor a position of the log such as 0/16B3748") from None


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def _number(name: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"the option {name!r} is a number above 0, not {text!r}")
    return int(text)
