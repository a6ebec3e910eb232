"""Tree patterns: what a view over documents asks for, and the XPath-like text it is written in.

    //item[/name{val}][//keyword="gold"]/description{cont}

              item               a step is a label, then branches, a predicate, and what is returned
           /   ||   \\            one line: child, two lines: descendant
        name keyword description
        {val} ="gold"  {cont}

    pattern = step+
    step    = ("/" | "//") ["@"] name branch* ["=" constant] [returns]
    branch  = "[" step+ "]"
    returns = "{" ("id" | "val" | "cont") ("," ...)* "}"

There is no white space outside constants. A quote within a constant is doubled: `="say ""hi"" to"`. A name is any run of
characters that mean nothing else here, so most keys of JSON can be written as they are, and names of XML with their prefix
(`dc:title`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from tidings.relay.errors import PatternError

PATTERN_LENGTH_MAX = 16 * 1024
"""Characters of a pattern."""
PATTERN_NODES_MAX = 64
"""Steps of a pattern, in branches too."""
PATTERN_DEPTH_MAX = 32
"""Steps from the first one to the deepest, both included."""


class Axis(StrEnum):
    """How a node hangs below its parent; the first node, below the document."""

    CHILD = "/"
    DESCENDANT = "//"


class Returned(StrEnum):
    """What a result row says of a node: its Dewey number, its text content, its serialised subtree."""

    ID = "id"
    VAL = "val"
    CONT = "cont"


Row = tuple[str, ...]
"""One result: the returned values in the order in which they stand in the pattern's text (`Pattern.columns`)."""


@dataclass(frozen=True, slots=True)
class PatternNode:
    """One step. Equality is that of the text: see `Pattern.canonical` for equality up to the order of branches.

    label: as documents have it; an attribute's starts with `@`.
    constant: what the node's text content must equal; None where it may be anything.
    following: the step after this one, on the same path. It differs from a last branch by its place in the text, which
        comes after what this node returns.
    """

    label: str
    axis: Axis
    branches: tuple[PatternNode, ...] = ()
    constant: str | None = None
    returns: tuple[Returned, ...] = ()
    following: PatternNode | None = None

    @property
    def children(self) -> tuple[PatternNode, ...]:
        return self.branches if self.following is None else (*self.branches, self.following)

    @property
    def text(self) -> str:
        branches = "".join(f"[{branch.text}]" for branch in self.branches)
        following = "" if self.following is None else self.following.text
        return f"{self.axis}{self.label}{branches}{self.condition}{following}"

    @property
    def condition(self) -> str:
        """Predicate and returns, as they are written."""
        constant = "" if self.constant is None else '="' + self.constant.replace('"', '""') + '"'
        return constant + (f"{{{','.join(self.returns)}}}" if self.returns else "")

    def canonical(self) -> PatternNode:
        """The same tree with children and returns in sorted order, the last child following."""
        children = sorted((child.canonical() for child in self.children), key=lambda child: child.text)
        returns = tuple(sorted(self.returns))
        following = children.pop() if children else None
        return PatternNode(self.label, self.axis, tuple(children), self.constant, returns, following)


@dataclass(frozen=True)
class Pattern:
    """A tree pattern, as `parse_pattern` reads it. Nodes are numbered in preorder."""

    root: PatternNode

    @cached_property
    def nodes(self) -> tuple[PatternNode, ...]:
        return tuple(node for node, _ in _preorder(self.root))

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The number of each node's parent; -1 of the first node."""
        path: list[int] = []
        found = []
        for number, (_, depth) in enumerate(_preorder(self.root)):
            del path[depth:]
            found.append(path[-1] if path else -1)
            path.append(number)
        return tuple(found)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of each node's children, branches first."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for number, parent in enumerate(self.parents[1:], 1):
            found[parent].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def returning(self) -> frozenset[int]:
        """Nodes that return something, or have one below them that does."""
        found = {number for number, step in enumerate(self.nodes) if step.returns}
        for number in range(len(self.nodes) - 1, 0, -1):
            if number in found:
                found.add(self.parents[number])
        return frozenset(found)

    @cached_property
    def columns(self) -> tuple[tuple[int, Returned], ...]:
        """Node and attribute of each value of a result row, in the order of the text: a node's own are behind its branches'."""
        return tuple(_columns(self.root, 0)[0])

    @cached_property
    def text(self) -> str:
        return self.root.text

    @cached_property
    def canonical(self) -> Pattern:
        """Equal for patterns that differ only in the order of branches and returns: they need and return the same nodes."""
        return Pattern(self.root.canonical())

    def __str__(self) -> str:
        return self.text


def _preorder(root: PatternNode) -> Iterator[tuple[PatternNode, int]]:
    """Nodes with their depth, 0 at the root."""
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in reversed(node.children))


def _columns(node: PatternNode, number: int) -> tuple[list[tuple[int, Returned]], int]:
    """Columns of the subtree at a node with this number, and the number behind the subtree."""
    found = []
    behind = number + 1
    for branch in node.branches:
        columns, behind = _columns(branch, behind)
        found += columns
    found += [(number, returned) for returned in node.returns]
    if node.following is not None:
        columns, behind = _columns(node.following, behind)
        found += columns
    return found, behind


def parse_pattern(text: str) -> Pattern:
    """PatternError if the text is not a pattern, returns nothing, or is too large."""
    if len(text) > PATTERN_LENGTH_MAX:
        hint = f"the limit is {PATTERN_LENGTH_MAX:,}"
        raise PatternError(
            f"the pattern has {len(text):,} characters and goes on", column=PATTERN_LENGTH_MAX + 1, hint=hint
        )
    parser = _Parser(text)
    root = parser.path(depth=1)
    if parser.at < len(text):
        raise parser.unexpected()
    pattern = Pattern(root)
    if not pattern.columns:
        hint = "write {id}, {val} or {cont} behind at least one step"
        raise PatternError("the pattern ends without returning anything", column=len(text) + 1, hint=hint)
    return pattern


_NAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff/@\[\]{}()=\"',*<>|!&;]+")
_CONSTANT = re.compile(r'"((?:[^"\ud800-\udfff]|"")*)"')
_RETURNS = re.compile(r"\{([^{}]*)\}")
_STEP_HINT = "a step is /name, //name, /@name or //@name"
_ORDER_HINT = 'a step is a name, then [branches], then ="constant", then {returns}'


class _Parser:
    """Reads from `at` on, by recursive descent; recursion is bounded by PATTERN_DEPTH_MAX."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.nodes = 0

    def path(self, depth: int) -> PatternNode:
        """One step with all that hangs below it."""
        start = self.at
        axis = self._axis()
        label = self._label()
        self.nodes += 1
        if self.nodes > PATTERN_NODES_MAX:
            raise self._error("one step too many", start, f"the limit is {PATTERN_NODES_MAX} steps, in branches too")
        if depth > PATTERN_DEPTH_MAX:
            raise self._error("a step too deep", start, f"the limit is {PATTERN_DEPTH_MAX} steps below each other")
        branches = []
        while self._here("["):
            branches.append(self._branch(depth))
        constant = self._constant() if self._here("=") else None
        returns = self._returns() if self._here("{") else ()
        following = self.path(depth + 1) if self._here("/") else None
        return PatternNode(label, axis, tuple(branches), constant, returns, following)

    def _axis(self) -> Axis:
        if not self._here("/"):
            raise self._error(f"{self._found()} where a step is to begin", self.at, _STEP_HINT)
        axis = Axis.DESCENDANT if self._here("//") else Axis.CHILD
        self.at += len(axis)
        return axis

    def _label(self) -> str:
        start = self.at
        self.at += self._here("@")
        name = _NAME.match(self.text, self.at)
        if name is None:
            hint = "there are no wildcards: write the name" if self._here("*") else _STEP_HINT
            raise self._error(f"{self._found()} where a name is to be", self.at, hint)
        if not name[0].strip("."):
            raise self._error(
                f"{name[0]!r} is no name", self.at, f"{_STEP_HINT}; conditions on a step are its branches"
            )
        self.at = name.end()
        if self._here("("):
            raise self._error("functions are not supported", start, '="constant" compares text, {val} returns it')
        return self.text[start : self.at]

    def _branch(self, depth: int) -> PatternNode:
        opened = self.at
        self.at += 1
        if not self._here("/"):
            hint = 'a branch begins with / or //, as in [/name], [//name] or [/@id="7"]'
            raise self._error(f"{self._found()} at the start of a branch", self.at, hint)
        branch = self.path(depth + 1)
        if not self._here("]"):
            if self.at < len(self.text):
                raise self.unexpected()
            raise self._error("a branch that is not closed", opened, "end it with ]")
        self.at += 1
        return branch

    def _constant(self) -> str:
        start = self.at + 1
        found = _CONSTANT.match(self.text, start)
        if found is None:
            is_open = self.text.startswith('"', start)
            problem = "a constant that does not end, or is no text" if is_open else "= without a constant"
            raise self._error(
                problem, start, 'constants are in double quotes, as in ="gold"; a quote within is doubled'
            )
        self.at = found.end()
        return found[1].replace('""', '"')

    def _returns(self) -> tuple[Returned, ...]:
        found = _RETURNS.match(self.text, self.at)
        hint = "what a step returns is {id}, {val}, {cont} or several, as {id,val}"
        if found is None:
            raise self._error("{ without }", self.at, hint)
        names = found[1].split(",")
        start = self.at + 1
        for index, name in enumerate(names):
            if name not in tuple(Returned):
                raise self._error(f"{_shown(name)} cannot be returned", start, hint)
            if name in names[:index]:
                raise self._error(f"{name!r} is returned twice", start, "name each once")
            start += len(name) + 1
        self.at = found.end()
        return tuple(Returned(name) for name in names)

    def unexpected(self) -> PatternError:
        """For what stands behind a whole step."""
        if self._here("]"):
            return self._error("] without [", self.at, "branches are [/..] or [//..]")
        if self.text[self.at].isspace():
            return self._error("white space", self.at, "a pattern has none outside constants")
        return self._error(f"{self._found()} behind a step", self.at, _ORDER_HINT)

    def _here(self, token: str) -> bool:
        return self.text.startswith(token, self.at)

    def _found(self) -> str:
        return _shown(self.text[self.at]) if self.at < len(self.text) else "the end of the pattern"

    def _error(self, problem: str, at: int, hint: str) -> PatternError:
        return PatternError(problem, column=at + 1, hint=hint)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
