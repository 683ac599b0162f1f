"""Writes a filter as one expression of CESQL.

A missing attribute is an error in CESQL, which ends the evaluation. Where that would decide otherwise than the filter, the
condition is guarded: `EXISTS x AND x = 'a'` is false instead. CESQL casts by rules of its own, so only the text of attributes
is compared.
"""

from __future__ import annotations

from typing import NoReturn

from tidings.errors import FilterSyntaxError
from tidings.filters import cesql, text_patterns
from tidings.filters.algebra import AllOf, Always, AnyOf, Compare, Exists, Filter, Literal, Not, OneOf, Order, Text, TextOp
from tidings.filters.cesql.tokens import KEYWORDS
from tidings.filters.cesql.tree import Constant
from tidings.filters.conversion.cesql_logic import ALWAYS_THERE, TEXTS
from tidings.filters.conversion.differences import Differences, refuse
from tidings.filters.paths import AttributePath, AttributeTextPath, DataPath, Path


def written(filter: Filter, differences: Differences) -> str:
    """The filter as an expression."""
    return _of(filter, may_fail=True)


def _of(filter: Filter, may_fail: bool) -> str:
    """`may_fail`: an error here is as good as false, since all that is left to decide would be false too."""
    match filter:
        case AllOf(parts):
            return " AND ".join(_operand(part, may_fail) for part in parts)
        case AnyOf(parts):
            last = len(parts) - 1
            return " OR ".join(_operand(part, may_fail and number == last) for number, part in enumerate(parts))
        case Not(Exists(path)):
            return f"NOT EXISTS {_name(filter, path)}" if _name(filter, path) not in ALWAYS_THERE else "FALSE"
        case Not(part):
            return f"NOT ({_of(part, may_fail=False)})"
        case Always(value):
            return "TRUE" if value else "FALSE"
        case Exists(path):
            return f"EXISTS {_name(filter, path)}"
    name = _name(filter, filter.path)
    condition = _condition(filter, name)
    if may_fail or name in ALWAYS_THERE:
        return condition
    return f"EXISTS {name} AND {condition}" if " OR " not in condition else f"EXISTS {name} AND ({condition})"


def _operand(part: Filter, may_fail: bool) -> str:
    """The part as one side of AND or OR, which have one rank: whatever holds one of them stands in parentheses."""
    text = _of(part, may_fail)
    simple = not isinstance(part, (AllOf, AnyOf)) and " AND " not in text and " OR " not in text
    return text if simple else f"({text})"


def _condition(leaf: Filter, name: str) -> str:
    match leaf:
        case Compare(_, Order.EQ | Order.NE as op, Literal(str(text))):
            return f"{name} {op} {_string(leaf, text)}"
        case OneOf(_, values) if all(isinstance(value.value, str) for value in values):
            texts = [_string(leaf, str(value.value)) for value in values]
            if name in TEXTS:
                return f"{name} IN ({', '.join(texts)})"
            return " OR ".join(f"{name} = {text}" for text in texts)
        case Text(_, TextOp.PREFIX, text) if "\\" not in text:
            return f"{name} LIKE {_pattern(leaf, (text, text_patterns.ANY))}"
        case Text(_, TextOp.SUFFIX, text) if "\\" not in text:
            return f"{name} LIKE {_pattern(leaf, (text_patterns.ANY, text))}"
        case Text(_, TextOp.PREFIX, text):
            return f"LEFT({name}, {len(text)}) = {_string(leaf, text)}"
        case Text(_, TextOp.SUFFIX, text):
            return f"RIGHT({name}, {len(text)}) = {_string(leaf, text)}"
        case Text(_, TextOp.CONTAINS, text):
            return f"{name} LIKE {_pattern(leaf, (text_patterns.ANY, text, text_patterns.ANY))}"
        case Text(_, TextOp.LIKE, pattern):
            return f"{name} LIKE {_pattern(leaf, text_patterns.like_parts(pattern))}"
    return refuse(leaf, "cesql", "it has no regular expressions, and it orders and casts values by rules of its own")


def _pattern(leaf: Filter, parts: tuple[object, ...]) -> str:
    """The wildcards `%` and `_`; both are taken literally behind a backslash, so a backslash may not stand before them."""
    signs = {text_patterns.ANY: "%", text_patterns.ONE: "_"}
    pattern = "".join(part.replace("%", r"\%").replace("_", r"\_") if isinstance(part, str) else signs[part] for part in parts)
    if any("\\" in part for part in parts if isinstance(part, str)):
        _unwritable(leaf)
    return _string(leaf, pattern)


def _string(leaf: Filter, text: str) -> str:
    """The text in quotes. A backslash before a quote cannot be written, nor one at the end."""
    for quote in "'\"":
        written = f"{quote}{text.replace(quote, chr(92) + quote)}{quote}"
        try:
            tree = cesql.parse(written).tree
        except FilterSyntaxError:
            continue
        if isinstance(tree, Constant) and tree.value == text:
            return written
    return _unwritable(leaf)


def _unwritable(leaf: Filter) -> NoReturn:
    refuse(leaf, "cesql", "it has no way to write this text with its backslashes")


def _name(leaf: Filter, path: Path) -> str:
    match path:
        case AttributeTextPath(name):
            return _addressable(leaf, name)
        case AttributePath(name) if name in TEXTS:
            return name
        case AttributePath(name) if isinstance(leaf, (Exists, Not)):
            return _addressable(leaf, name)
        case AttributePath(name):
            refuse(leaf, "cesql", f"it casts attributes, so their kinds cannot be told apart; write text(@{name})")
        case DataPath():
            refuse(leaf, "cesql", "it looks at attributes, and this is a place in the payload; an attribute is written @name")
    return refuse(leaf, "cesql", "it looks at attributes only")


def _addressable(leaf: Filter, name: str) -> str:
    if name.isdecimal() or name.upper() in KEYWORDS:
        refuse(leaf, "cesql", f"an attribute cannot be named {name} there")
    return name
