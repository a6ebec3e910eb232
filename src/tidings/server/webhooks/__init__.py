"""Webhooks: every target is a cursor on the notice log. Signed, in order, at least once, and never into our own network."""

from tidings.server.webhooks.addresses import UrlRefused, check_url
from tidings.server.webhooks.delivery import Webhooks
from tidings.server.webhooks.target import SCHEDULE, RegistryCall

__all__ = ["SCHEDULE", "RegistryCall", "UrlRefused", "Webhooks", "check_url"]
