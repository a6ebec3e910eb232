"""Page of the experiment on selections with bulky columns."""

from __future__ import annotations

from pathlib import Path

from research.experiments.page import assembled, opening, section
from research.experiments.paper import Config, Results, Rows


def page(results: Results, _: Config, stamped: Config, pictures: list[str]) -> str:
    head = Path(__file__).parent / "head.md"
    return assembled(opening("Select", "select", stamped), head, {"photos": _photos}, results, {"photos": {}}, pictures)


_LINES = {
    "bytes, whole rows": "region_bytes",
    "bytes, photos apart": "entering_bytes",
    "messages, whole rows": "region_messages",
    "messages, photos apart": "entering_messages",
    "photos that reached subscriptions, apart": "photos_received",
    "of these held already": "photos_held",
    "notifications": "notifications",
}


def _photos(rows: Rows, _: Config) -> str:
    head = ["photos of", *(f"{row['photo_bytes']:,} bytes" for row in rows)]
    lines = [[label, *(f"{row[key]:,}" for row in rows)] for label, key in _LINES.items()]
    about = "Bytes of encoded messages, each counted once. Notifications are the same either way."
    return section("Section I: ratings of products with photos", about, head, lines)
