"""Offers: constraints on both sides. Rows of a table of constraints meet the constraints of subscriptions."""

from tidings.families.offers.family import OffersFamily

__all__ = ["OffersFamily"]
