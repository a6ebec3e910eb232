"""Servers and evaluators whose modules are imported when they are first made: compiled kernels take a second to import."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from research.servers.protocols import MakeServer, Server
from tidings.families.registry import MakeEvaluator
from tidings.families.spec import Form
from tidings.model.catalog import Catalog

if TYPE_CHECKING:
    from tidings.families.evaluator import Evaluator, Store


def server(module: str, name: str, *parameters: object) -> MakeServer:
    """What makes the server: the function `name` of the module, called with form, catalog and the parameters."""

    def make(form: Form, catalog: Catalog) -> Server:
        made: Server = getattr(import_module(module), name)(form, catalog, *parameters)
        return made

    return make


def evaluator(module: str, name: str) -> MakeEvaluator:
    """What makes the evaluator: the function `name` of the module, called with catalog and store."""

    def make(catalog: Catalog, store: Store) -> Evaluator:
        made: Evaluator = getattr(import_module(module), name)(catalog, store)
        return made

    return make
