"""Lines of changes of constraint tables: an offer has an id and a constraint instead of a row."""

from __future__ import annotations


def publish(seq: int, table: str, op: str, id: str, where: str, expires: int = 0) -> bytes:
    """A line that inserts, updates or upserts an offer. expires: the sequence number at which it is gone; 0: never."""
    # Nothing in the constraints of workloads needs escaping in JSON.
    end = f', "expires": {expires}' if expires else ""
    return f'{{"seq": {seq}, "table": "{table}", "op": "{op}", "id": "{id}", "where": "{where}"{end}}}'.encode()


def withdraw(seq: int, table: str, id: str) -> bytes:
    """A line that deletes an offer."""
    return f'{{"seq": {seq}, "table": "{table}", "op": "delete", "id": "{id}"}}'.encode()
