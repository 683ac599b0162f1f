"""Reads a CESQL text into a tree, by binding powers (Pratt): every infix operator is left-associative.

| power | operators |
|---|---|
| 90 · 80 | `NOT` · `-` before an operand |
| 70 · 60 | `LIKE`, `NOT LIKE` and a string · `IN`, `NOT IN` and a set |
| 50 · 40 · 30 | `* / %` · `+ -` · `= != <> < <= > >=` |
| 20 | `AND`, `OR`, `XOR`: one level |
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from tidings.errors import FilterSyntaxError
from tidings.filters import text_patterns
from tidings.filters.cesql.functions import function
from tidings.filters.cesql.tokens import CesqlTokenKind, Token, tokens
from tidings.filters.cesql.tree import Among, Attribute, Constant, FunctionCall, Infix, Like, Node, Prefix, Present
from tidings.filters.cesql.values import fits

MAX_CHARACTERS = 4096
MAX_DEPTH = 100

_POWERS = {
    **dict.fromkeys(("*", "/", "%"), 50),
    **dict.fromkeys(("+", "-"), 40),
    **dict.fromkeys(("=", "!=", "<>", "<", "<=", ">", ">="), 30),
    **dict.fromkeys(("AND", "OR", "XOR"), 20),
}
_NOT, _MINUS, _LIKE, _IN, _LOGIC = 90, 80, 70, 60, 20
_FUNCTION = re.compile(r"[A-Za-z][A-Za-z_]*")
_NAME = re.compile(r"[A-Za-z0-9]+")
_OPERAND = "a value, an attribute, a function, EXISTS, NOT, - or ("


class _Left(NamedTuple):
    """What stands before an operator, and where that begins: at the parenthesis, if there is one."""

    node: Node
    start: int


class Parser:
    """Reads one text. `mixed` holds the places where AND, OR and XOR follow each other without parentheses (SQL-22)."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise FilterSyntaxError(
                "the expression is too long",
                at=f"column {MAX_CHARACTERS + 1}",
                found=f"{len(text)} characters",
                expected=f"at most {MAX_CHARACTERS}",
            )
        text_patterns.check(text)
        self._tokens = list(tokens(text))
        self._at = 0
        self._depth = 0
        self.mixed: list[tuple[Token, str]] = []

    def whole(self) -> Node:
        node = self._expression(0)
        if self._next.kind is not CesqlTokenKind.END:
            self._next.refuse("the expression goes on after its end", "an operator or the end")
        return node

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _expression(self, power: int) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._next.refuse("the expression is nested too deeply", f"at most {MAX_DEPTH} levels")
        start = self._next.start
        node = self._operand()
        before = ""
        while (binding := self._binding()) > power:
            operator = self._take()
            if binding == _LOGIC:
                if before and before != operator.text:
                    self.mixed.append((operator, before))
                before = operator.text
            node = self._continued(_Left(node, start), operator, binding)
        self._depth -= 1
        return node

    def _binding(self) -> int:
        """The power of the operator that stands next, 0 where none does."""
        token = self._next
        if token.kind is CesqlTokenKind.SIGN:
            return _POWERS.get(token.text, 0)
        if token.kind is not CesqlTokenKind.KEYWORD:
            return 0
        if token.text == "NOT":
            token = self._tokens[self._at + 1]
            return {"LIKE": _LIKE, "IN": _IN}.get(token.text, 0) if token.kind is CesqlTokenKind.KEYWORD else 0
        return {"LIKE": _LIKE, "IN": _IN}.get(token.text) or _POWERS.get(token.text, 0)

    def _continued(self, left: _Left, operator: Token, binding: int) -> Node:
        negated = operator.text == "NOT"
        if negated:
            operator = self._take()
        match operator.text:
            case "LIKE":
                return self._like(left, negated)
            case "IN":
                elements = self._list("a set needs at least one element", least=1)
                return Among(left.node, elements, negated, left.start, self._end)
        right = self._expression(binding)
        return Infix(left.node, operator.text, right, left.start, self._end)

    @property
    def _end(self) -> int:
        """Where the last token that was taken ends."""
        return self._tokens[self._at - 1].end

    def _like(self, left: _Left, negated: bool) -> Node:
        token = self._take()
        if token.kind is not CesqlTokenKind.STRING:
            token.refuse("LIKE needs a pattern", "a string")
        pattern = wildcards(token.text)
        try:
            text_patterns.like_test(pattern)
        except FilterSyntaxError as error:
            token.refuse(f"the pattern is refused: {error.what}", "a shorter pattern")
        return Like(left.node, pattern, negated, left.start, token.end)

    def _operand(self) -> Node:
        token = self._take()
        match token.kind:
            case CesqlTokenKind.STRING:
                return Constant(token.text, token.start, token.end)
            case CesqlTokenKind.DIGITS:
                return self._integer(token, token)
            case CesqlTokenKind.WORD:
                return self._named(token)
            case CesqlTokenKind.KEYWORD:
                return self._keyword(token)
            case CesqlTokenKind.SIGN:
                return self._signed(token)
        return _refuse_operand(token)

    def _keyword(self, token: Token) -> Node:
        match token.text:
            case "TRUE" | "FALSE":
                return Constant(token.text == "TRUE", token.start, token.end)
            case "NOT":
                operand = self._expression(_NOT)
                return Prefix("NOT", operand, token.start, self._end)
            case "EXISTS":
                name = self._take()
                if name.kind is not CesqlTokenKind.WORD or not _NAME.fullmatch(name.text) or self._calls(name):
                    name.refuse("EXISTS needs the name of an attribute", "a name of letters and digits")
                return Present(name.text.lower(), token.start, name.end)
        return _refuse_operand(token)

    def _signed(self, token: Token) -> Node:
        digits = self._next
        if token.text in "+-" and digits.kind is CesqlTokenKind.DIGITS and digits.start == token.end:
            return self._integer(token, self._take())
        if token.text == "-":
            operand = self._expression(_MINUS)
            return Prefix("-", operand, token.start, self._end)
        if token.text == "(":
            inner = self._expression(0)
            self._need(")")
            return inner
        return _refuse_operand(token)

    def _integer(self, first: Token, digits: Token) -> Node:
        significant = digits.text.lstrip("0") or "0"
        number = int(significant[:11]) * (-1 if first.text == "-" else 1)
        if not fits(number):
            first.refuse("the integer is too large", "-2147483648 to 2147483647")
        return Constant(number, first.start, digits.end)

    def _named(self, token: Token) -> Node:
        if self._calls(token):
            arguments = self._list("an argument is missing", least=0)
            return FunctionCall(token.text, function(token.text, len(arguments)), arguments, token.start, self._end)
        if not _NAME.fullmatch(token.text):
            token.refuse("this is no name of an attribute", "letters and digits, or ( after the name of a function")
        return Attribute(token.text.lower(), token.start, token.end)

    def _calls(self, token: Token) -> bool:
        """Whether the word is the name of a function: a parenthesis follows."""
        return self._next.kind is CesqlTokenKind.SIGN and self._next.text == "(" and _FUNCTION.fullmatch(token.text) is not None

    def _list(self, what: str, least: int) -> tuple[Node, ...]:
        self._need("(")
        if least == 0 and self._sign(")"):
            return ()
        if self._next.kind is CesqlTokenKind.SIGN and self._next.text == ")":
            self._next.refuse(what, _OPERAND)
        found = [self._expression(0)]
        while self._sign(","):
            found.append(self._expression(0))
        self._need(")")
        return tuple(found)

    def _take(self) -> Token:
        token = self._next
        if token.kind is not CesqlTokenKind.END:
            self._at += 1
        return token

    def _sign(self, text: str) -> bool:
        if self._next.kind is not CesqlTokenKind.SIGN or self._next.text != text:
            return False
        self._at += 1
        return True

    def _need(self, sign: str) -> None:
        if not self._sign(sign):
            self._next.refuse(f"`{sign}` is missing", sign)


def wildcards(pattern: str) -> str:
    """A LIKE pattern as one of `text_patterns`: `%` is `*`, `_` is `?`, backslash before either takes it literally."""
    signs = {"%": "*", "_": "?", r"\%": "%", r"\_": "_", "*": r"\*", "?": r"\?", "\\": r"\\"}
    return re.sub(r"\\?[%_]|[*?\\]", lambda found: signs[found[0]], pattern)


def _refuse_operand(token: Token) -> NoReturn:
    token.refuse("an operand is missing", _OPERAND)
