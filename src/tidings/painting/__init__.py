"""Pictures of subscription space: where everybody is, and where one change goes."""

from tidings.painting.collect import collect
from tidings.painting.svg import draw

__all__ = ["collect", "draw"]
