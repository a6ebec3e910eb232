"""The schema of XMark's auction site, as data: what documents of the relay workloads have, and views ask for.

74 elements and 9 names of attributes, 83 labels in all. Children stand in the order of the schema, which is also the order of
their popularity in views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ROOT = "site"


@dataclass(frozen=True)
class Child:
    """An element below another. least, most: how often; most is None where any number may follow."""

    label: str
    least: int = 1
    most: int | None = 1


@dataclass(frozen=True)
class Element:
    """children: in order. attributes: names with @ before.

    is_choice: any of the children may be there, in any order. is_either: exactly one of them is.
    """

    children: tuple[Child, ...] = ()
    attributes: tuple[str, ...] = ()
    has_text: bool = False
    is_choice: bool = False
    is_either: bool = False
    labels: tuple[str, ...] = field(init=False)
    """Of children and attributes, the latter last."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", (*(child.label for child in self.children), *self.attributes))


def _element(children: str = "", attributes: str = "", **others: bool) -> Element:
    """children: names, each with ?, * or + behind it as in a DTD."""
    occurrences = {"?": (0, 1), "*": (0, None), "+": (1, None)}
    found = []
    for word in children.split():
        least, most = occurrences.get(word[-1], (1, 1))
        found.append(Child(word.rstrip("?*+"), least, most))
    names = tuple(f"@{name}" for name in attributes.split())
    return Element(tuple(found), names, **others)


_REGIONS = "africa asia australia europe namerica samerica"
_MARKUP = _element("bold* keyword* emph*", has_text=True, is_choice=True)
_LEAVES = """
    location quantity name payment shipping from to date emailaddress phone street city country province zipcode homepage
    creditcard education gender business age initial reserve time increase current privacy happiness type start end price
"""

ELEMENTS: Mapping[str, Element] = {
    "site": _element("regions categories catgraph people open_auctions closed_auctions"),
    "regions": _element(_REGIONS),
    **dict.fromkeys(_REGIONS.split(), _element("item*")),
    "item": _element("location quantity name payment description shipping incategory+ mailbox", "id featured"),
    "incategory": _element(attributes="category"),
    "mailbox": _element("mail*"),
    "mail": _element("from to date text"),
    "description": _element("text parlist", is_either=True),
    "text": _MARKUP,
    "bold": _MARKUP,
    "keyword": _MARKUP,
    "emph": _MARKUP,
    "parlist": _element("listitem*"),
    "listitem": _element("text* parlist*", is_choice=True),
    "categories": _element("category+"),
    "category": _element("name description", "id"),
    "catgraph": _element("edge*"),
    "edge": _element(attributes="from to"),
    "people": _element("person*"),
    "person": _element("name emailaddress phone? address? homepage? creditcard? profile? watches?", "id"),
    "address": _element("street city country province? zipcode"),
    "profile": _element("interest* education? gender? business age?", "income"),
    "interest": _element(attributes="category"),
    "watches": _element("watch*"),
    "watch": _element(attributes="open_auction"),
    "open_auctions": _element("open_auction*"),
    "open_auction": _element(
        "initial reserve? bidder* current privacy? itemref seller annotation quantity type interval", "id"
    ),
    "bidder": _element("date time personref increase"),
    "personref": _element(attributes="person"),
    "itemref": _element(attributes="item"),
    "seller": _element(attributes="person"),
    "annotation": _element("author description? happiness"),
    "author": _element(attributes="person"),
    "interval": _element("start end"),
    "closed_auctions": _element("closed_auction*"),
    "closed_auction": _element("seller buyer itemref price date quantity type annotation?"),
    "buyer": _element(attributes="person"),
    **dict.fromkeys(_LEAVES.split(), _element(has_text=True)),
}

LABELS = tuple(dict.fromkeys([*ELEMENTS, *(name for element in ELEMENTS.values() for name in element.attributes)]))

VALUES = tuple(
    """
    gold silver ivory amber pearl jade copper tin lead iron oak elm ash pine teak silk wool linen felt lace
    clay slate chalk flint sand salt wax ink paper glass brass bronze steel zinc coal cork reed straw bone
    horn fur hide rope wire coin bead bell drum harp lute
    """.split()  # noqa: SIM905
)
"""What texts and attributes are, and what views compare them with, from the most popular on."""


def has_value(label: str) -> bool:
    """Whether nodes of the label have a text or value of their own."""
    return label.startswith("@") or ELEMENTS[label].has_text
