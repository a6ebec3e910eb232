"""Workloads of relay: views over documents of an auction site, sites that hold the views, and the documents."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.workloads import Entry

WORKLOADS: Mapping[str, Entry] = {
    "views": Entry(
        "tree patterns over documents of an auction site, distinct or with duplicates, and the sites that hold them",
        "tidings.relay.workloads.outputs:views",
        ("views", "distinct", "values", "format", "sites", "capacity"),
    ),
    "documents": Entry(
        "documents of an auction site, of 10 to 40 kB, in which most of these views find something; XML or JSON",
        "tidings.relay.workloads.outputs:documents",
        ("documents", "values", "format"),
    ),
}
