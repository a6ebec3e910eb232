"""Views that can be computed from each other in many ways, documents with something for them, and random plans."""

from itertools import combinations
from random import Random

from tidings.relay.document import Document
from tidings.relay.embedding import coverage, is_rewriting
from tidings.relay.files import View
from tidings.relay.json_document import parse_json
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.reference import reference_rows
from tidings.relay.rest import rest_of
from tidings.relay.row_views.query import RowQuery
from tidings.relay.runtime.run import run_relay
from tidings.relay.xml_document import parse_xml

PATTERNS = [
    "//item{id}",
    "//item/name{val}",
    "//item[/price{val}]{id}",
    "//item[/name{val}]/price{val}",
    "//item[/price{val}]/name{val}",
    '//item[/name="pen"]/price{val}',
    "//shop//item/name{cont}",
    '//shop//item[/name="pen"{id}]{id}',
    "/root//shop{id}//item[/name{val}]/price{val}",
    "//name{cont}",
]
OTHER_PATTERNS = ["//price{val}", "//item{cont}/name{val}"]
"""What a view asks for that comes back under an old name."""


def _xml(*items):
    texts = ["".join(f"<{key}>{value}</{key}>" for key, value in pairs) for pairs in items]
    return "<shop>" + "".join(f"<item>{text}</item>" for text in texts) + "</shop>"


PEN, INK, BOX = (("name", "pen"), ("price", 2)), (("name", "ink"), ("price", 3)), (("name", "box"),)
DOCUMENTS = [
    parse_xml(f"<root>{_xml(PEN, INK)}</root>".encode()),
    parse_xml(b"<root/>"),
    parse_xml(f"<root><item><name>pen</name></item>{_xml(BOX)}{_xml(PEN)}</root>".encode()),
    parse_xml(f"<root>{_xml(PEN, (*PEN, *INK), INK)}<price>1</price></root>".encode()),
    parse_json(b'{"shop": {"item": [{"name": "pen", "price": 2}, {"price": [4, 5], "name": "ink"}]}}'),
    parse_json(b'{"item": {"name": ["pen", "box"], "price": 1}, "shop": [{"item": {"name": "pen"}}, {}]}'),
]


def views_of(patterns):
    return [View(f"v{number}", parse_pattern(text)) for number, text in enumerate(patterns)]


def delivered(plan, views, documents):
    """(view, document, rows), where there are rows, by the plan: nothing is refused."""

    def refuse(*refused):
        raise AssertionError(refused)

    return list(run_relay(plan, views, named(documents), quarantine=refuse))


def said_directly(views, documents):
    """The same by definition: what each view says of a document itself."""
    ordered = sorted(views, key=lambda view: view.id)
    return [
        (view.id, name, rows)
        for name, document in named(documents)
        for view in ordered
        if (rows := _rows_of(view.query, document))
    ]


def named(documents):
    return [(f"{number}", document) for number, document in enumerate(documents)]


def _rows_of(query, document):
    if isinstance(query, RowQuery):
        return query.rows(query.match(document))
    return reference_rows(query, document) if isinstance(document, Document) else []


def _rewritings(target, sources):
    found = []
    for size in (1, 2, 3):
        for chosen in combinations(sources, size):
            is_minimal = not any(set(smaller) <= set(chosen) for smaller in found)
            if is_minimal and is_rewriting([parse_pattern(text) for text in chosen], parse_pattern(target)):
                found.append(chosen)
    return found


_ALL = [*PATTERNS, *OTHER_PATTERNS]
REWRITINGS = {target: _rewritings(target, [text for text in _ALL if text != target]) for target in _ALL}


def random_plan(random: Random, views) -> RelayPlan:
    """Each view takes, more often than not, one of its rewritings from views that are before it in a random order; some take
    others that know a part, and the rest from the publisher."""
    order = list(views)
    random.shuffle(order)
    by_pattern = {}
    inputs = {}
    for view in order:
        text = view.query.text
        choices = [[text]] if text in by_pattern else []
        choices += [chosen for chosen in REWRITINGS[text] if all(source in by_pattern for source in chosen)]
        known = [source for source in by_pattern if coverage(parse_pattern(source), view.query) is not None]
        some = random.sample(known, min(len(known), random.randint(1, 2)))
        if choices and random.random() < 0.7:
            inputs[view.id] = tuple(by_pattern[source] for source in random.choice(choices))
        elif some and rest_of(view.query, [parse_pattern(source) for source in some]) is not None:
            inputs[view.id] = tuple(random.sample([PUBLISHER, *(by_pattern[source] for source in some)], len(some) + 1))
        else:
            inputs[view.id] = (PUBLISHER,)
        by_pattern[text] = view.id
    return RelayPlan(inputs)
