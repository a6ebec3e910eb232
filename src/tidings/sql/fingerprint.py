"""Cuts SQL text into a skeleton and its literals, so that statements which differ only in constants are parsed once.

Two scans. `fast_cut` is a single `re.split`: right for text without comments and quoted identifiers, and cheap. Where
those occur, its skeleton shows them: the first `--`, `/*` or `"` stands before anything the scan could get wrong. So no
such skeleton is ever stored, and `careful_cut`, which knows them, is tried next. The same goes for `silent_for`, whose
constant belongs to the shape: only `careful_cut` can tell it from the others.

A skeleton is only trusted after the real tokenizer has found the same literals at the same places (see `template`).
A literal that stays in the skeleton makes templates less shared, but never wrong.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# A literal begins with one class of characters, which lets the scanner jump from candidate to candidate; what kind it is,
# and what stands before it, is looked up behind that character. Repeats never give back: nothing shorter could match.
_AFTER_NAME = r"[\w.$@#?:\\\"`')\]]"
_TAIL = r"(?:[eE][+-]?[0-9]++)?+(?![\w.$@#?:\\\"`'(\[])"
# LIMIT's number belongs to the shape, so it stays in the skeleton. (Spaced more widely it is cut, and then no template
# is made, since it is no operand.)
_NO_LIMIT = r"(?<!(?i:limit)\s[0-9])(?<!(?i:limit)\s\s[0-9])"
_AFTER_DIGIT = rf"(?<=[0-9])(?<!{_AFTER_NAME}[0-9]){_NO_LIMIT}[0-9]*+\.?+[0-9]*+{_TAIL}"
_AFTER_QUOTE = r"(?<=')[^']*+'(?:'[^']*+')*+"
_AFTER_DOT = rf"(?<=\.)(?<!{_AFTER_NAME}\.)[0-9]++{_TAIL}"
_LITERAL = rf"['0-9.](?:{_AFTER_DIGIT}|{_AFTER_QUOTE}|{_AFTER_DOT})"
_STRING = rf"'{_AFTER_QUOTE}"
_SPLIT = re.compile(rf"({_LITERAL})").split
_COMMENT = r"--[^\n\r]*|/\*.*?\*/"
_QUOTED_NAME = r'"[^"]*(?:""[^"]*)*"'
# What silent_for is compared with belongs to the shape as well. It may stand on either side of a column of any name, so
# only the careful cut keeps it. (Spaced or commented otherwise it is cut, and no template is made.)
_SILENT_FOR = r"(?i:silent_for)"
_SILENCE = (
    rf'{_SILENT_FOR}\s*\((?:[\w\s.]|"[^"]*")*\)\s*>=\s*[0-9]+'
    rf"|[0-9](?<!{_AFTER_NAME}[0-9])[0-9]*\s*<=\s*{_SILENT_FOR}"
    rf"|(?i:interval)\s(?:{_STRING}|[0-9]+)"
)
_CAREFUL = re.compile(rf"(?P<silence>{_SILENCE})|(?P<literal>{_LITERAL})|(?P<comment>{_COMMENT})|{_QUOTED_NAME}", re.S)
_NUMBER_TEXT = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Skeletons with any other character are parsed afresh each time: placeholders and the like are never shared.
_PLAIN_PART = r"[\w\s.,*()=<>!+\-;\"\0]*"
_PLAIN = re.compile(rf"{_PLAIN_PART}(?:'(?<=(?i:interval)\s')[^'\0]*'{_PLAIN_PART})*")

# Stands in the skeleton where a literal was taken out; text that contains it is never cut.
HOLE = "\0"


class Cut(NamedTuple):
    """`skeleton`: the text with a HOLE per literal. `literals`: their source text, quotes included."""

    skeleton: str
    literals: list[str]


def fast_cut(sql: str) -> tuple[str, list[str]]:
    """A Cut, as a bare tuple, of the text as if it had neither comments nor quoted identifiers."""
    pieces = _SPLIT(sql)
    literals = pieces[1::2]
    del pieces[1::2]
    return HOLE.join(pieces), literals


def fast_spans(cut: Cut) -> list[tuple[int, int]]:
    """Where the literals of a fast cut stand in the text."""
    spans: list[tuple[int, int]] = []
    at = 0
    for piece, literal in zip(cut.skeleton.split(HOLE), cut.literals, strict=False):
        start = at + len(piece)
        at = start + len(literal)
        spans.append((start, at))
    return spans


def needs_care(skeleton: str) -> bool:
    """True when a fast skeleton shows comments, quoted identifiers or silent_for: the fast cut may be wrong."""
    return '"' in skeleton or "--" in skeleton or "/*" in skeleton or "silent_for" in skeleton.lower()


def careful_cut(sql: str) -> tuple[Cut, list[tuple[int, int]]] | None:
    """Cut text that has comments, quoted identifiers or silent_for, comments becoming a space; with the literals' spans.

    None where the text is too odd to be sure: nested comments, and comments that are optimizer hints.
    """
    parts: list[str] = []
    literals: list[str] = []
    spans: list[tuple[int, int]] = []
    end = 0
    for match in _CAREFUL.finditer(sql):
        parts.append(sql[end : match.start()])
        end = match.end()
        text = match.group()
        if match.lastgroup == "literal":
            parts.append(HOLE)
            literals.append(text)
            spans.append(match.span())
        elif match.lastgroup == "comment":
            if text.startswith("/*+") or text.find("/*", 2) >= 0:
                return None
            parts.append(" ")
        else:
            parts.append(text)
    parts.append(sql[end:])
    return Cut("".join(parts), literals), spans


def is_cacheable(cut: Cut) -> bool:
    """True when the skeleton is made of plain characters only and has exactly one hole per literal."""
    return _PLAIN.fullmatch(cut.skeleton) is not None and cut.skeleton.count(HOLE) == len(cut.literals)


def is_number(text: str) -> bool:
    """True for an unsigned number literal as SQL writes it."""
    return _NUMBER_TEXT.fullmatch(text) is not None


def leading_dot_numbers(sql: str) -> list[tuple[int, int]]:
    """Spans of numbers written like `.5`, outside strings, comments and quoted identifiers."""
    return [
        match.span() for match in _CAREFUL.finditer(sql) if match.lastgroup == "literal" and match.group()[0] == "."
    ]
