"""Pictures of relay plans: every view is in them, whatever its id, and PNG has the same as SVG."""

import sys
from io import BytesIO
from itertools import pairwise
from random import Random
from time import perf_counter
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from tidings.model.errors import UsageError
from tidings.relay.load import loads_of
from tidings.relay.painting import VIEWS_MAX, paint_plan, png, svg
from tidings.relay.painting.layered import crossings, order_layers, place_layers
from tidings.relay.painting.levels import COLUMNS_MAX
from tidings.relay.painting.shapes import Picture, Rectangle, Text, shown
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.summary import levels_shown

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<b>&\"'",
    "$x_1$ \\",
    "a\nb\x00c",
    "x" * 500,
    "\u202eabc",
    "日本語のビューの長い名前です",
    "\ud800",
    "",
    "]]>",
]
BLUE, ORANGE = "#2b7bba", "#e07b39"


def random_plan(seed, views, ids=None, reach=None):
    """Views with up to three inputs among the last `reach` before them; a tenth and the first are fed by the publisher."""
    random = Random(seed)
    ids = [f"v{number}" for number in range(views)] if ids is None else ids
    inputs = {}
    for number, id in enumerate(ids):
        earlier = range(0 if reach is None else max(0, number - reach), number)
        sources = random.sample(earlier, min(len(earlier), random.randint(1, 3)))
        is_first = not sources or random.random() < 0.1
        inputs[id] = (PUBLISHER,) if is_first else tuple(ids[source] for source in sources)
    return RelayPlan(inputs, use=1_234.5, bound=1_200.0, gap=0.0008, latency=2.5 * len(ids), least_use=1_201.0)


def dots_of(picture):
    return [circle for circle in parsed(picture).iter(f"{SVG}circle") if circle.find(f"{SVG}title") is not None]


def parsed(picture):
    return ElementTree.fromstring(svg(picture).encode())


def texts_of(picture):
    return [text.text for text in parsed(picture).iter(f"{SVG}text")]


@given(st.integers(0, 10**6), st.integers(0, 60), st.none() | st.integers(1, 5))
@settings(max_examples=15, deadline=None)
def test_a_small_plan_has_a_dot_for_each_view_and_a_line_for_each_feed(seed, views, reach):
    plan = random_plan(seed, views, reach=reach)
    if max(plan.levels.values(), default=0) > 40:
        return
    loads = loads_of(plan, capacity=2)
    picture = paint_plan(plan, loads)
    dots = dots_of(picture)
    assert len(dots) == views
    assert len({(dot.get("cx"), dot.get("cy")) for dot in dots}) == views
    assert sum(dot.get("fill") == ORANGE for dot in dots) == sum(map(loads.is_full, plan.inputs))
    lines = [path for path in parsed(picture).iter(f"{SVG}path") if path.get("opacity")]
    assert len(lines) == sum(map(len, plan.inputs.values()))
    for dot in dots:
        assert 0 < float(dot.get("cx")) < picture.width and 0 < float(dot.get("cy")) < picture.height


def test_each_level_is_further_to_the_right():
    plan = random_plan(5, 50)
    places = {}
    for dot in dots_of(paint_plan(plan)):
        places.setdefault(plan.levels[dot.find(f"{SVG}title").text.split(":")[0]], set()).add(float(dot.get("cx")))
    assert all(len(columns) == 1 for columns in places.values())
    columns = [min(places[level]) for level in sorted(places)]
    assert len(columns) > 2 and columns == sorted(columns)


def test_the_title_says_how_good_the_plan_is():
    plan = random_plan(0, 40)
    title, figures = texts_of(paint_plan(plan))[:2]
    assert title == f"Relay plan: 40 views, {plan.feeds} of them ({plan.feeds / 40:.1%}) fed by the publisher"
    assert "use 1,234 " in figures and "least use 1,201, gap 0.08%" in figures and "latency 2.50 hops" in figures


@pytest.mark.parametrize("more", [0, VIEWS_MAX])
def test_hostile_ids(more):
    plan = random_plan(1, 0, [*HOSTILE, *(f"v{number}" for number in range(more))])
    picture = paint_plan(plan)
    texts = texts_of(picture)
    assert all(text.isprintable() for text in texts)
    if not more:
        assert {"<b>&\"'", "$x_1$ \\", "a\ufffdb\ufffdc", "xxxxxxxxx…xxxx", '""', "]]>"} <= set(texts)
    assert png(picture, 0.5).startswith(b"\x89PNG")


@given(st.text(max_size=40), st.integers(4, 20))
@settings(max_examples=25, deadline=None)
def test_ids_are_shown_in_one_short_line(text, most):
    found = shown(text, most)
    assert found.isprintable() and 0 < len(found) <= most + 2
    if text.isascii() and text.isprintable() and text.strip() and len(text) <= most:
        assert found == text


def test_dots_and_names_do_not_overlap():
    plan = random_plan(2, VIEWS_MAX, reach=60)
    picture = paint_plan(plan, loads_of(plan, capacity=5))
    names = [shape for shape in picture.shapes if isinstance(shape, Text) and shape.text in plan.inputs]
    assert len(names) == VIEWS_MAX
    by_column = {}
    for name in names:
        by_column.setdefault(name.x, []).append(name)
    for column in by_column.values():
        column.sort(key=lambda name: name.y)
        assert all(below.y - above.y >= above.size for above, below in pairwise(column))


def test_a_large_plan_has_bars_for_its_levels():
    plan = random_plan(3, 1_000)
    picture = paint_plan(plan, loads_of(plan, capacity=10))
    texts = texts_of(picture)
    for name, count in levels_shown(plan, COLUMNS_MAX):
        assert texts[texts.index(f"level {name}") + 1] == ("1 view" if count == 1 else f"{count} views")
    assert f"feeds {plan.feeds}" in texts and "at capacity" in texts
    assert dots_of(picture) == []
    for shape in picture.shapes:
        if isinstance(shape, Rectangle):
            assert 0 <= shape.x <= shape.x + shape.width <= picture.width
            assert 0 <= shape.y <= shape.y + shape.height <= picture.height


def test_a_huge_or_deep_plan_is_a_small_file_soon():
    for plan in (random_plan(4, 50_000), random_plan(4, 5_000, reach=3), random_plan(4, 100, reach=1)):
        start = perf_counter()
        text = svg(paint_plan(plan, loads_of(plan, capacity=10)))
        assert perf_counter() - start < 10
        assert len(text) < 100_000


def pixels_of(data):
    return imread(BytesIO(data), format="png")[..., :3]


@pytest.mark.parametrize("views", [0, 30, 400])
def test_png_is_drawn(views):
    plan = random_plan(6, views)
    picture = paint_plan(plan, loads_of(plan, capacity=3))
    data = png(picture, 1.0)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    pixels = pixels_of(data)
    assert abs(pixels.shape[1] - picture.width) <= 1 and abs(pixels.shape[0] - picture.height) <= 1
    assert pixels[0, 0].tolist() == [1, 1, 1]
    assert (pixels < 0.5).all(axis=2).mean() > 1e-3, "there is dark text"
    if views:
        for colour in (BLUE, ORANGE):
            wanted = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
            assert (abs(pixels - wanted).max(axis=2) < 0.01).any()


def test_png_has_shapes_where_the_picture_has_them():
    pixels = pixels_of(png(Picture(40, 20, [Rectangle(10, 5, 8, 4, "#ff0000")]), 1.0))
    red = (pixels == [1, 0, 0]).all(axis=2)
    assert red[5:9, 10:18].all() and red.sum() == 32


def test_png_without_matplotlib_says_what_to_install(monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "matplotlib":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Without("matplotlib"), *sys.meta_path])
    with pytest.raises(UsageError, match=r"\.\[research\]"):
        png(paint_plan(random_plan(0, 3)))


class _Without:
    """An import system that lacks a package."""

    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_layers_are_ordered_with_no_more_crossings_and_keep_apart(seed, layers, most):
    random = Random(seed)
    given_layers = [[(layer, node) for node in range(random.randint(1, most))] for layer in range(layers)]
    edges = [
        (one, other)
        for layer, following in pairwise(given_layers)
        for one in layer
        for other in following
        if random.random() < 0.5
    ]
    after = {}
    for one, other in edges:
        after.setdefault(one, []).append(other)
    found = order_layers(given_layers, edges)
    assert [sorted(layer) for layer in found] == given_layers
    assert crossings(found, after) == plain_crossings(found, edges) <= crossings(given_layers, after)
    room = {node: random.choice([1.0, 3.0]) for layer in found for node in layer}
    height = max(sum(room[node] for node in layer) for layer in found)
    places = place_layers(found, edges, room, height)
    for layer in found:
        for above, below in pairwise(layer):
            assert places[below] - places[above] >= (room[above] + room[below]) / 2 - 1e-9
        assert places[layer[0]] >= room[layer[0]] / 2 - 1e-9
        assert places[layer[-1]] <= height - room[layer[-1]] / 2 + 1e-9


def plain_crossings(layers, edges):
    place = {node: number for layer in layers for number, node in enumerate(layer)}
    pairs = [(a, b) for a in edges for b in edges if a[0][0] == b[0][0]]
    return sum(place[a[0]] < place[b[0]] and place[a[1]] > place[b[1]] for a, b in pairs)
