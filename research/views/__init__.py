"""Views: what subscriptions hold at a receiver of messages, by family."""

from __future__ import annotations

from research.views.protocols import Views
from tidings.families.registry import family_of
from tidings.model.catalog import Catalog


def views_of(form_key: str, catalog: Catalog) -> Views:
    """Views of the subscriptions of a form. Their kernels take a second to import, so each family's come when asked for."""
    family, form = family_of(form_key)
    match family.name:
        case "select":
            from research.strategies.select.table_form import table_space
            from research.views.select.view import SelectViews

            return SelectViews(table_space(catalog.table(form.shape.tables[0])))
        case "drift":
            from research.views.drift.view import DriftViews
            from tidings.families.drift.subscription import space_of as drift_space

            return DriftViews(drift_space(form, catalog))
        case "topk":
            from research.views.topk.view import TopkViews
            from tidings.families.topk.subscription import space_of as topk_space

            return TopkViews(topk_space(form, catalog))
        case "join":
            from research.strategies.join.space import space_of as join_space
            from research.views.join.view import JoinViews

            return JoinViews(join_space(form, catalog))
        case "offers":
            from research.strategies.offers.axes_form import space_of as offers_space
            from research.views.offers.view import OffersViews

            return OffersViews(offers_space(form, catalog))
    raise AssertionError(f"there are no views of family {family.name!r}")
