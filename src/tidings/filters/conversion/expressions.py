"""Text conditions as regular expressions that fit the whole text."""

from __future__ import annotations

import re
from typing import assert_never

from tidings.filters import text_patterns
from tidings.filters.algebra import Text, TextOp

_ANY = "(?s:.*)"


def whole_expression(leaf: Text) -> str:
    """An expression that fits a whole text exactly when the condition holds for it."""
    match leaf.op:
        case TextOp.PREFIX:
            return f"{_escaped(leaf.pattern)}{_ANY}"
        case TextOp.SUFFIX:
            return f"{_ANY}{_escaped(leaf.pattern)}"
        case TextOp.CONTAINS:
            return f"{_ANY}{_escaped(leaf.pattern)}{_ANY}"
        case TextOp.LIKE:
            signs = {text_patterns.ANY: _ANY, text_patterns.ONE: "(?s:.)"}
            parts = text_patterns.like_parts(leaf.pattern)
            return "".join(_escaped(part) if isinstance(part, str) else signs[part] for part in parts)
        case TextOp.REGEX:
            return f"{_ANY}(?:{leaf.pattern}){_ANY}"
        case TextOp.WHOLE:
            return leaf.pattern
    assert_never(leaf.op)


def _escaped(text: str) -> str:
    r"""Signs that mean something are escaped, and nothing else: `\ ` is refused by some readers of expressions."""
    return re.sub(r"[\\.\[\]{}()*+?^$|]", lambda sign: "\\" + sign[0], text)
