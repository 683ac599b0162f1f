"""The text of a path in Jayway's json-path dialect: its tokens. Predicates are read by `jayway_predicates`.

| written | means | refused |
|---|---|---|
| `$.a.b` `@.a.b` `a.b` | the same: without `$` or `@`, `$.` is put in front | `$a` |
| `.name` | `$..name`: any depth | `$...name`, a dot at the end |
| `.a-b` `['a b']` | a name; blanks need brackets | `$.a b` |
| `[1:3]` | a slice | a step (`[1:3:2]`), `[:]` |
| `[?(@.a > 1)]` `$.[?(…)]` | a predicate | without parentheses; placeholders (`[?]`) |
| `.sum()` | a function, last in the path | unknown ones, and anything after it |
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tidings.errors import FilterSyntaxError
from tidings.filters.jsonpath.compiled_path import ABSENT, CompiledPath, Lost, Operand, PathRun
from tidings.filters.jsonpath.cursor import Cursor
from tidings.filters.jsonpath.jayway.functions import FUNCTIONS, Function
from tidings.filters.jsonpath.jayway.literals import blank, items, literal, quoted
from tidings.filters.jsonpath.jayway.operands import operand
from tidings.filters.jsonpath.jayway.predicates import Predicates
from tidings.filters.jsonpath.jayway.steps import (
    Call,
    Deep,
    Elements,
    Every,
    Matching,
    Members,
    SliceStep,
    Token,
    is_definite,
    plain,
    steps_of,
)

_AT_TOP = re.compile(r"[^\s.\[\]()]+")
_INSIDE = re.compile(r"[^\s.\[\]()<>=!~&|,]+")
_NUMBERS = re.compile(r"[-0-9:, ]*")
_INDEXES = re.compile(r"\s*-?\d+\s*(?:,\s*-?\d+\s*)*", re.ASCII)
_SLICE = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*", re.ASCII)
_MAX_DIGITS = 9


def parse(text: str) -> CompiledPath:
    """The path that the text stands for. Raises FilterSyntaxError with the column."""
    cursor = _started(text)
    cursor.at = 1
    tokens = JaywayGrammar(cursor, _AT_TOP).tokens()
    if not cursor.ended:
        cursor.fail("'.', '[' or the end")
    return CompiledPath(steps_of(tokens), is_definite(tokens), plain(tokens))


def _started(text: object) -> Cursor:
    """The text from its `$` or `@` on, put in front when it is not there."""
    given = Cursor(text).text
    bare = given.strip()
    if not bare:
        raise FilterSyntaxError("the path is empty", found=given, expected="a path such as $.order.id")
    before = given.index(bare[0])
    return Cursor(bare, -before) if bare[0] in "$@" else Cursor(f"$.{bare}", 2 - before)


class JaywayGrammar:
    """Reads paths at the cursor. `name` is what a name without quotes may be made of."""

    def __init__(self, cursor: Cursor, name: re.Pattern[str]) -> None:
        self._cursor = cursor
        self._name = name

    def tokens(self) -> tuple[Token, ...]:
        """What follows `$` or `@`."""
        found: list[Token] = []
        while self._cursor.sees(".", "["):
            self._cursor.segment()
            if self._cursor.takes(".."):
                found.append(Deep())
            elif self._cursor.takes(".") and self._cursor.sees("."):
                self._cursor.fail("a name, '*' or '['")
            function = self._next(found)
            if function is not None:
                return self._called(function, tuple(found))
        return tuple(found)

    def _next(self, found: list[Token]) -> str | None:
        """Add the token at the cursor; the name of a function is given back instead."""
        cursor, at = self._cursor, self._cursor.at
        if cursor.takes("["):
            with cursor.deeper():
                found.append(self._bracketed())
            return None
        if cursor.takes("*"):
            found.append(Every())
            return None
        name = cursor.match(self._name)
        if name is None:
            cursor.fail("a name, '*' or '['; other names need brackets and quotes")
        if cursor.sees("("):
            self._check_function(name, found, at)
            return name
        found.append(Members((name,)))
        return None

    def _bracketed(self) -> Token:
        cursor = self._cursor
        blank(cursor)
        if cursor.sees("'", '"'):
            token: Token = self._names()
        elif cursor.takes("*"):
            token = Every()
        elif cursor.takes("?"):
            blank(cursor)
            token = Matching(Predicates(cursor, JaywayGrammar(cursor, _INSIDE).tokens).predicate())
        else:
            token = self._counted()
        blank(cursor)
        cursor.want("]")
        return token

    def _names(self) -> Token:
        names: list[str] = []
        while not names or self._cursor.takes(","):
            blank(self._cursor)
            if not self._cursor.sees("'", '"'):
                self._cursor.fail("a name in quotes")
            names.append(quoted(self._cursor))
            blank(self._cursor)
        return Members(tuple(names))

    def _counted(self) -> Token:
        cursor, at = self._cursor, self._cursor.at
        text = cursor.match(_NUMBERS) or ""
        if any(len(digits) > _MAX_DIGITS for digits in re.findall(r"\d+", text)):
            cursor.fail(f"numbers of at most {_MAX_DIGITS} digits", at=at)
        if _INDEXES.fullmatch(text):
            return Elements(tuple([int(index) for index in text.split(",")]))
        ends = _SLICE.fullmatch(text)
        if ends is None or ends[1] is ends[2] is None:
            cursor.fail("a name in quotes, an index, a slice such as 1:3, '*' or '?('", at=at)
        begin, end = (None if number is None else int(number) for number in ends.groups())
        return SliceStep(begin, end)

    def _check_function(self, name: str, before: list[Token], at: int) -> None:
        if name not in FUNCTIONS:
            self._cursor.fail(", ".join(FUNCTIONS), "this function is not known", at)
        if before and isinstance(before[-1], Deep):
            self._cursor.fail("a name or '*' before the function", at=at)

    def _called(self, name: str, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        with self._cursor.deeper():
            arguments = self._arguments(children=name in ("length", "size"))
        if self._cursor.sees(".", "["):
            self._cursor.fail("the end", "nothing can follow a function")
        if not tokens or not isinstance(tokens[0], Deep):
            return (*tokens, Call(_call(FUNCTIONS[name], arguments, own=name in ("length", "size"))))
        # After a deep scan the function is not tried on each value that was found but on all of them.
        scanned = operand((*tokens, Every()) if name in ("length", "size") else tokens, absolute=False)
        return (Call(_call(FUNCTIONS[name], [scanned], own=True)),)

    def _arguments(self, children: bool) -> list[Operand]:
        self._cursor.want("(")
        return [self._argument(children) for _ in items(self._cursor, ")")]

    def _argument(self, children: bool) -> Operand:
        if not self._cursor.sees("$", "@"):
            value = literal(self._cursor)
            return lambda current, run: value
        self._cursor.at += 1
        tokens = JaywayGrammar(self._cursor, _INSIDE).tokens()
        calls = bool(tokens) and isinstance(tokens[-1], Call)
        return operand((*tokens, Every()) if children and not calls else tokens, absolute=False)


def _call(function: Function, arguments: list[Operand], own: bool) -> Callable[[object, PathRun], object]:
    """`own`: the arguments are looked for in the value itself, else in the whole document."""

    def made(value: object, run: PathRun) -> object:
        given = [argument(value if own else run.root, run) for argument in arguments]
        if any(one is ABSENT for one in given):
            raise Lost
        return function(value, given, run)

    return made
