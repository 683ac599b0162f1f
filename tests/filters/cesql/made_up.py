"""Hypothesis strategies: CESQL expressions of every kind, true, false and failing, and the events of `tests.filters.made_up`."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("type", "subject", "flag", "count", "SOURCE", "absent", "data")
STRINGS = ("'a'", "'ab'", '"EU"', "''", "'1'", "'05'", "'true'", "'TRUE'", "'-1'", r"'a\'b'", "'%'", "'é'")
PATTERNS = ("'a%'", "'%b'", "'_'", "'%'", r"'\%'", "'E_'", "''", "'a_%'")
NUMBERS = ("0", "1", "-1", "10", "2147483647", "-2147483648")
FUNCTIONS = ("LENGTH", "LOWER", "upper", "TRIM", "ABS", "INT", "BOOL", "STRING", "NOSUCH")

attributes = st.sampled_from(NAMES)
constants = st.sampled_from([*STRINGS, *NUMBERS, "TRUE", "false"])
operands = attributes | attributes | constants | attributes.map(lambda name: f"EXISTS {name}")
simple = (
    st.builds(lambda name, value: f"{name} = {value}", attributes, constants)
    | st.builds(lambda name, value: f"{name} != {value}", attributes, constants)
    | st.builds(lambda name, pattern: f"{name} LIKE {pattern}", attributes, st.sampled_from(PATTERNS))
    | st.builds(lambda name, pattern: f"{name} NOT LIKE {pattern}", attributes, st.sampled_from(PATTERNS))
    | st.builds(
        lambda name, word, values: f"{name} {word} ({', '.join(values)})",
        attributes,
        st.sampled_from(["IN", "not in"]),
        st.lists(constants, min_size=1, max_size=3),
    )
)


LOGIC = ("AND", "AND", "OR", "OR", "XOR")
SIGNS = ("=", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")
SHAPES = (
    *(f"{{}} {op} {{}}" for op in LOGIC + SIGNS),
    *(f"({{}}) {op} ({{}})" for op in LOGIC),
    *(f"{name}({{}})" for name in FUNCTIONS),
    "NOT ({})",
    "-({})",
    "LEFT({}, {})",
    "SUBSTRING({}, {}, {})",
    "CONCAT_WS({}, {})",
    "({}) IN ({}, {})",
)


@st.composite
def _joined(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    shape = draw(st.sampled_from(SHAPES))
    return shape.format(*(draw(inner) for _ in range(shape.count("{}"))))


expressions = st.recursive(simple | simple | operands, _joined, max_leaves=8)
accepted_expressions = expressions.map(lambda text: text.replace("NOSUCH", "LENGTH"))
"""Those that a filter may use: no unknown function."""

pieces = st.sampled_from(
    [*NAMES, *STRINGS, *NUMBERS, *FUNCTIONS, "AND", "NOT", "LIKE", "IN", "EXISTS", *"()+-*/%,=<>!'\"\\ §", "x_y"]
)
nonsense = st.lists(pieces, max_size=8).map(" ".join) | st.lists(pieces, max_size=8).map("".join) | st.text(max_size=12)
