"""Patterns are read as they are written, equal up to the order of branches, and refused at the column that is wrong."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_patterns import pattern_nodes

from tidings.model.errors import TidingsError
from tidings.relay import Axis, Pattern, PatternError, PatternNode, Returned, parse_pattern
from tidings.relay.pattern import PATTERN_DEPTH_MAX, PATTERN_LENGTH_MAX, PATTERN_NODES_MAX

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=4).filter(
    lambda name: not set(name) & set("/@[]{}()=\"',*<>|!&;") and name.strip(".")
)
CONSTANTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def test_the_example_of_the_contract():
    name = PatternNode("name", Axis.CHILD, returns=(Returned.VAL,))
    keyword = PatternNode("keyword", Axis.DESCENDANT, constant="gold")
    description = PatternNode("description", Axis.CHILD, returns=(Returned.CONT,))
    item = PatternNode("item", Axis.DESCENDANT, branches=(name, keyword), following=description)
    pattern = parse_pattern('//item[/name{val}][//keyword="gold"]/description{cont}')
    assert pattern == Pattern(item)
    assert pattern.nodes == (item, name, keyword, description)
    assert pattern.parents == (-1, 0, 0, 0)
    assert pattern.columns == ((1, Returned.VAL), (3, Returned.CONT))


def test_columns_are_in_the_order_of_the_text():
    pattern = parse_pattern('/a[/b[/c{cont}]{val}]="x"{val,id}/d{id}')
    assert [(pattern.nodes[number].label, returned) for number, returned in pattern.columns] == [
        ("c", "cont"),
        ("b", "val"),
        ("a", "val"),
        ("a", "id"),
        ("d", "id"),
    ]
    assert pattern.parents == (-1, 0, 1, 0)


@pytest.mark.parametrize("text", ["/dc:title{val}", "//$ref{id}", "/@type{val}", "/a.b-c_d{id}", "/0{id}", "/क्या{id}"])
def test_names(text):
    assert parse_pattern(text).text == text


def test_constants():
    assert parse_pattern('/a="say ""hi"""{id}').root.constant == 'say "hi"'
    assert parse_pattern('/a="/b[{\\"{id}').root.constant == "/b[{\\"
    assert parse_pattern('/a=""{id}').root.constant == ""


@given(pattern_nodes(labels=st.builds(str.__add__, st.sampled_from(["", "@"]), NAMES), constants=CONSTANTS))
def test_text_reads_back(root):
    pattern = Pattern(root)
    if not pattern.columns:
        with pytest.raises(PatternError, match="without returning anything"):
            parse_pattern(pattern.text)
    elif len(pattern.nodes) <= PATTERN_NODES_MAX:
        assert parse_pattern(pattern.text) == pattern
        assert parse_pattern(pattern.canonical.text) == pattern.canonical


def shuffled(node, draws):
    children = [shuffled(child, draws) for child in node.children]
    draws.shuffle(children)
    following = children.pop() if children and draws.random() < 0.5 else None
    returns = tuple(draws.sample(node.returns, len(node.returns)))
    return PatternNode(node.label, node.axis, tuple(children), node.constant, returns, following)


@given(pattern_nodes(), st.integers(0, 2**32))
def test_canonical_form_ignores_order(root, seed):
    pattern = Pattern(root)
    assert Pattern(shuffled(root, random.Random(seed))).canonical == pattern.canonical
    assert pattern.canonical.canonical == pattern.canonical
    assert len(pattern.canonical.nodes) == len(pattern.nodes)
    assert len(pattern.canonical.columns) == len(pattern.columns)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/a{id}", "//a{id}"),
        ("/a{id}", "/a{val}"),
        ("/a{id}", '/a=""{id}'),
        ("/a[/b[/c]]{id}", "/a[/b][/c]{id}"),
        ("/a[/b]{id}", "/a[/b][/b]{id}"),
        ("/a[/b{id}]/c", "/a[/b]/c{id}"),
    ],
)
def test_what_differs_stays_different(one, other):
    assert parse_pattern(one).canonical != parse_pattern(other).canonical


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "the end of the pattern where a step is to begin"),
        ("item{id}", 1, "'i' where a step is to begin"),
        ("/", 2, "the end of the pattern where a name is to be"),
        ("///a{id}", 3, "'/' where a name is to be"),
        ("//*{id}", 3, "no wildcards"),
        ("/a/../b{id}", 4, "'..' is no name"),
        ("/a/text(){val}", 4, "functions are not supported"),
        ("/a", 3, "without returning anything"),
        ("/a[b]{id}", 4, "begins with / or //"),
        ('/a[@id="7"]{id}', 4, '[/@id="7"]'),
        ("/a[1]{id}", 4, "begins with / or //"),
        ("/a[/b{id}", 3, "not closed"),
        ("/a[/b[/c]{id}", 3, "not closed"),
        ("/a{id}]", 7, "] without ["),
        ("/a=gold{id}", 4, "double quotes"),
        ("/a='gold'{id}", 4, "double quotes"),
        ('/a="gold{id}', 4, "does not end"),
        ('/a="\ud800"{id}', 4, "is no text"),
        ("/a{id", 3, "{ without }"),
        ("/a{}", 4, "'' cannot be returned"),
        ("/a{id,value}", 7, "'value' cannot be returned"),
        ("/a{id, val}", 7, "' val' cannot be returned"),
        ("/a{val,id,val}", 11, "twice"),
        ('/a{id}="x"', 7, 'then ="constant", then {returns}'),
        ('/a="x"[/b]{id}', 7, "then [branches]"),
        ("/a{id}[/b]", 7, "then [branches]"),
        ("/a {id}", 3, "white space"),
        ("/a{id} ", 7, "white space"),
        ("/@{id}", 3, "where a name is to be"),
    ],
)
def test_refusals_point_at_the_column(text, column, words):
    with pytest.raises(PatternError) as caught:
        parse_pattern(text)
    assert caught.value.column == column
    assert words in str(caught.value)
    assert f"at column {column}; " in str(caught.value)
    assert isinstance(caught.value, TidingsError)


def test_sizes_are_bounded():
    parse_pattern("/a" * PATTERN_DEPTH_MAX + "{id}")
    with pytest.raises(PatternError, match=f"too deep at column {2 * PATTERN_DEPTH_MAX + 1}; "):
        parse_pattern("/a" * (PATTERN_DEPTH_MAX + 1) + "{id}")
    with pytest.raises(PatternError, match="too deep"):
        parse_pattern("/a[" * 5_000)
    parse_pattern("/a" + "[/b]" * (PATTERN_NODES_MAX - 1) + "{id}")
    with pytest.raises(PatternError, match=f"one step too many at column {4 * PATTERN_NODES_MAX}; "):
        parse_pattern("/a" + "[/b]" * PATTERN_NODES_MAX + "{id}")
    with pytest.raises(PatternError, match="characters"):
        parse_pattern('/a="' + "x" * PATTERN_LENGTH_MAX + '"{id}')


def check_refused_or_read(text):
    try:
        pattern = parse_pattern(text)
    except PatternError as error:
        assert 1 <= error.column <= len(text) + 1
        assert error.hint
    else:
        assert pattern.text == text


@given(st.lists(st.sampled_from([*'/[]{}=",@* .\n', "//", "[/", '="', "a", "id", "val", "cont", "{id}", "\ud800"])))
def test_no_text_breaks_the_parser(pieces):
    check_refused_or_read("".join(pieces))


@given(pattern_nodes(), st.integers(0), st.sampled_from([*'/[]{}=",@a', ""]), st.booleans())
def test_no_slip_breaks_the_parser(root, at, piece, replaces):
    text = Pattern(root).text
    at %= len(text) + 1
    check_refused_or_read(text[:at] + piece + text[at + replaces :])
