"""Options of `tidings workload` for the workloads of relay."""

from __future__ import annotations

from enum import StrEnum

import typer


class DocumentFormat(StrEnum):
    XML = "xml"
    JSON = "json"


VIEWS = typer.Option(min=1, help="For views: how many.", show_default="100000")
DISTINCT = typer.Option(min=1, help="For views: how many differ; the others are duplicates.", show_default="all")
VALUES = typer.Option(
    min=1,
    help="For views and documents: how many different values they have, up to 50. The fewer, the more match.",
    show_default="50",
)
SITES = typer.Option(
    min=1, help="For views: how many sites hold them; with their places in sites.jsonl.", show_default="each its own"
)
CAPACITY = typer.Option(min=1, help="For views: how many others each site may feed.", show_default="left open")
DOCUMENTS = typer.Option(min=1, help="For documents: how many, in the folder documents.", show_default="200")
FORMAT = typer.Option(help="For views and documents: of what format documents are.", show_default="xml")
