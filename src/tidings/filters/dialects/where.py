"""Our own short form, for the command line and for people. FILTERS.md tells it to users.

| written | means |
|---|---|
| `total.amount`, `items[0].sku`, `"odd name".x` | a place in the JSON payload |
| `@type`, `text(@retries)` | an attribute; the same in its text form |
| `= == != <> < <= > >=` and a value | Compare |
| `in ("a", 1, null)` | OneOf |
| `starts with`, `ends with`, `contains`, `like` (`*`, `?`, `\\`), `matches` (RE2, searched for) and a text | Text |
| `not in`, `not like`, … | the value is there, and not so |
| `x exists`, `exists x`, `x is not missing` · `x not exists`, `x is missing` | Exists · Not Exists |
| `sql("type = 'x' AND EXISTS subject")` | an expression in CESQL |
| `not`, `and`, `or`, `( )`, `true`, `false` | Not binds closest, then and, then or |

Values are texts in double or single quotes (a quote inside is doubled; a backslash is just a backslash), numbers, true, false
and null. Words are read in any letter case. Refused: more than 8,192 characters, 64 levels or 500 conditions; an order with
true, false or null; an expression that RE2 cannot say; a value on the left side; a reserved word as the first name of a path.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from tidings.errors import FilterSyntaxError
from tidings.filters import text_patterns
from tidings.filters.algebra import (
    Always,
    Compare,
    Exists,
    Filter,
    Literal,
    Not,
    OneOf,
    Order,
    Text,
    TextOp,
    all_of,
    any_of,
    cesql_of,
    literal,
    there_but_not,
)
from tidings.filters.dialects.where_tokens import Token, WhereTokenKind, tokens
from tidings.filters.paths import AttributePath, AttributeTextPath, DataPath, Path

T = TypeVar("T")

MAX_CHARACTERS = 8192
MAX_DEPTH = 64
MAX_CONDITIONS = 500
_MAX_NUMBER = 1000

_ORDERS = {"==": Order.EQ, "<>": Order.NE} | {order.value: order for order in Order}
_TEXT_OPS = {op.value.split()[0]: op for op in TextOp}
_CONSTANTS = {"true": True, "false": False, "null": None}
_OPERATORS = "=, !=, <, <=, >, >=, in, like, starts with, ends with, contains, matches, exists, is missing or not"


def parse(raw: object) -> Filter:
    """The filter a text stands for. Raises FilterSyntaxError with the column."""
    if not isinstance(raw, str):
        raise FilterSyntaxError("the filter is no text", found=raw, expected="a text such as: total.amount >= 100")
    if len(raw) > MAX_CHARACTERS:
        raise FilterSyntaxError("the filter is too long", found=f"{len(raw)} characters", expected=f"at most {MAX_CHARACTERS}")
    return _Parser(raw).whole()


class _Parser:
    """Reads tokens from left to right; every method leaves the first token that is not its own."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._next = next(self._tokens)
        self._depth = 0
        self._conditions = 0

    def whole(self) -> Filter:
        found = self._either()
        if self._next.kind is not WhereTokenKind.END:
            self._next.refuse("the filter goes on after its end", "and, or, or the end of the filter")
        return found

    def _either(self) -> Filter:
        parts = [self._both()]
        while self._word("or"):
            parts.append(self._both())
        return any_of(*parts)

    def _both(self) -> Filter:
        parts = [self._one()]
        while self._word("and"):
            parts.append(self._one())
        return all_of(*parts)

    def _one(self) -> Filter:
        start = self._next
        self._depth += 1
        if self._depth > MAX_DEPTH:
            start.refuse("the filter is nested too deeply", f"at most {MAX_DEPTH} levels")
        if self._word("not"):
            found: Filter = Not(self._one())
        elif self._sign("("):
            found = self._either()
            self._need_sign(")")
        else:
            found = self._condition()
        self._depth -= 1
        return found

    def _condition(self) -> Filter:
        start = self._next
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            start.refuse("the filter has too many conditions", f"at most {MAX_CONDITIONS}")
        if start.kind is WhereTokenKind.WORD and start.text in ("true", "false"):
            self._take()
            return Always(start.text == "true")
        if self._word("exists"):
            return Exists(self._path())
        if start.kind is WhereTokenKind.NAME and start.text == "sql":
            self._take()
            return self._sql() if self._sign("(") else self._compared(self._places([_member(start)]))
        return self._compared(self._path())

    def _sql(self) -> Filter:
        token = self._take()
        if token.kind is not WhereTokenKind.QUOTED:
            token.refuse("sql() takes an expression", "a text in quotes")
        found = _placed(token, lambda: cesql_of(token.text))
        self._need_sign(")")
        return found

    def _compared(self, path: Path) -> Filter:
        token = self._take()
        if token.kind is WhereTokenKind.SIGN and token.text in _ORDERS:
            return self._ordered(path, _ORDERS[token.text])
        if token.kind is WhereTokenKind.WORD:
            match token.text:
                case "exists":
                    return Exists(path)
                case "is":
                    return self._missing(path)
                case "not":
                    return self._negated(path)
                case "in" | "like" | "starts" | "ends" | "contains" | "matches":
                    return self._looked_for(path, token)
        return token.refuse("an operator is missing", _OPERATORS)

    def _ordered(self, path: Path, op: Order) -> Filter:
        token = self._next
        value = self._value()
        return _placed(token, lambda: Compare(path, op, value))

    def _missing(self, path: Path) -> Filter:
        there = self._word("not")
        if not self._word("missing"):
            self._next.refuse("`is` is followed by `missing`", "missing or not missing (write = null for null)")
        return Exists(path) if there else Not(Exists(path))

    def _negated(self, path: Path) -> Filter:
        token = self._take()
        if token.kind is WhereTokenKind.WORD and token.text == "exists":
            return Not(Exists(path))
        if token.kind is WhereTokenKind.WORD and (token.text == "in" or token.text in _TEXT_OPS):
            return there_but_not(self._looked_for(path, token))
        return token.refuse("`not` is not followed by an operator", "in, like, starts, ends, contains, matches or exists")

    def _looked_for(self, path: Path, word: Token) -> OneOf | Text:
        if word.text == "in":
            return OneOf(path, self._values())
        op = _TEXT_OPS[word.text]
        if op in (TextOp.PREFIX, TextOp.SUFFIX) and not self._word("with"):
            self._next.refuse(f"`{word.text}` is followed by `with`", "with")
        token = self._take()
        if token.kind is not WhereTokenKind.QUOTED:
            token.refuse(f"`{op}` needs a text", "a text in quotes")
        return _placed(token, lambda: Text(path, op, token.text))

    def _values(self) -> tuple[Literal, ...]:
        self._need_sign("(")
        values = [self._value()]
        while self._sign(","):
            values.append(self._value())
        self._need_sign(")")
        return tuple(values)

    def _value(self) -> Literal:
        token = self._take()
        match token.kind:
            case WhereTokenKind.QUOTED:
                return _placed(token, lambda: literal(token.text))
            case WhereTokenKind.NUMBER:
                return _number(token)
            case WhereTokenKind.WORD if token.text in _CONSTANTS:
                return Literal(_CONSTANTS[token.text])
        return token.refuse("a value is missing", "a text in quotes, a number, true, false or null")

    def _path(self) -> Path:
        token = self._next
        if token.kind is WhereTokenKind.ATTRIBUTE:
            return AttributePath(self._attribute())
        if token.kind is WhereTokenKind.SIGN and token.text == "[":
            return self._places([])
        if token.kind not in (WhereTokenKind.NAME, WhereTokenKind.QUOTED):
            hint = "; a member of this name needs quotes" if token.kind is WhereTokenKind.WORD else ""
            token.refuse("a condition begins with a path", f"a member name, @attribute, not or ({hint}")
        self._take()
        if token.kind is WhereTokenKind.NAME and token.text == "text" and self._sign("("):
            name = self._attribute()
            self._need_sign(")")
            return AttributeTextPath(name)
        return self._places([_member(token)])

    def _attribute(self) -> str:
        token = self._take()
        if token.kind is not WhereTokenKind.ATTRIBUTE:
            token.refuse("text() takes an attribute", "@ and its name")
        return _placed(token, lambda: AttributePath(token.text)).name

    def _places(self, steps: list[str | int]) -> DataPath:
        start = self._next
        while True:
            if self._sign("["):
                steps.append(self._index())
                self._need_sign("]")
            elif self._sign("."):
                token = self._take()
                if token.kind not in (WhereTokenKind.NAME, WhereTokenKind.QUOTED, WhereTokenKind.WORD):
                    token.refuse("a member name is missing after the dot", "a name, or a text in quotes")
                steps.append(_member(token))
            else:
                return _placed(start, lambda: DataPath(tuple(steps)))

    def _index(self) -> int:
        token = self._take()
        if token.kind is not WhereTokenKind.NUMBER or not token.text.isdecimal() or len(token.text) > 9:
            token.refuse("this is no array index", "a number from 0 to 999999999")
        return int(token.text)

    def _take(self) -> Token:
        token = self._next
        if token.kind is not WhereTokenKind.END:
            self._next = next(self._tokens)
        return token

    def _word(self, text: str) -> bool:
        return self._skip(WhereTokenKind.WORD, text)

    def _sign(self, text: str) -> bool:
        return self._skip(WhereTokenKind.SIGN, text)

    def _skip(self, kind: WhereTokenKind, text: str) -> bool:
        if self._next.kind is not kind or self._next.text != text:
            return False
        self._take()
        return True

    def _need_sign(self, sign: str) -> None:
        if not self._sign(sign):
            self._next.refuse(f"`{sign}` is missing", sign)


def _member(token: Token) -> str:
    """The member name as written: a reserved word after a dot keeps its letter case."""
    name = token.text if token.kind is WhereTokenKind.QUOTED else token.written
    _placed(token, lambda: text_patterns.check(name))
    return name


def _number(token: Token) -> Literal:
    if len(token.text) > _MAX_NUMBER:
        token.refuse("the number is too long", f"at most {_MAX_NUMBER} digits")
    try:
        return literal(int(token.text) if token.text.lstrip("-").isdecimal() else Decimal(token.text))
    except InvalidOperation:
        token.refuse("the number is too large or too small", "an exponent below 10^18")


def _placed(token: Token, make: Callable[[], T]) -> T:
    """What `make` gives; a refusal of the algebra gets the column of the token."""
    try:
        return make()
    except FilterSyntaxError as error:
        raise FilterSyntaxError(error.what, at=f"column {token.column}", found=error.found, expected=error.expected) from error
