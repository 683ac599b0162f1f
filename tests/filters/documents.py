"""Hypothesis strategies: filter documents of the dialects that are JSON, good ones and nonsense."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.filters.made_up import EXPRESSIONS, NUMBERS, all_filters_with, texts
from tidings.filters import parse
from tidings.filters.algebra import Filter

PATHS = (
    *("$.a", "a", "$.b.a", "$.c", "$.c[0]", "$", "$['odd name']", "$.b", "$['é\n']"),
    *("$.c[*]", "$..a", "$.c[-1]", "$.c[?(@ == 1)]", "$.*", "$.c[0:1]", "$.b['a','z']", "$.c.length()", "$..c[0]"),
)
NAMES = ("a", "b.a", "c.0", "c.1", "b", "$", "odd name", "", "c.00")
AVRO_PATHS = (".a", "b.a", ".c[*]", ".c[0]")

values: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.sampled_from(NUMBERS).map(lambda number: int(number) if number.isdecimal() else Decimal(number)),
    texts,
)
listed = st.lists(values | st.lists(values, max_size=2), max_size=4)

horizon_leaves = st.one_of(
    st.builds(
        lambda op, field, value: {op: {"field": field, "value": value}},
        st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "ct", "nct", "EQ"]),
        st.sampled_from(PATHS),
        values | values | listed,
    ),
    st.builds(
        lambda op, field, value: {op: {"field": field, "value": value}},
        st.sampled_from(["in", "nin"]),
        st.sampled_from(PATHS),
        listed,
    ),
    st.builds(
        lambda field, value: {"rx": {"field": field, "value": value}}, st.sampled_from(PATHS), st.sampled_from(EXPRESSIONS)
    ),
)
horizon: st.SearchStrategy[Any] = st.recursive(
    horizon_leaves,
    lambda inner: st.builds(lambda op, parts: {op: parts}, st.sampled_from(["and", "or", "And"]), st.lists(inner, max_size=3)),
    max_leaves=8,
)

simple: st.SearchStrategy[Any] = st.dictionaries(st.sampled_from(NAMES), values, max_size=3)

matchers = st.sampled_from([*EXPRESSIONS, "1", "1.0", "true", ".*", "null", "EU", r"\[.*", r"\{.*=.*\}", "1.0E10"])
hermes: st.SearchStrategy[Any] = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("jsonpath"), "path": st.sampled_from(PATHS), "matcher": matchers},
            optional={"matchingStrategy": st.sampled_from(["all", "any", "ANY"])},
        ),
        st.fixed_dictionaries({"type": st.just("avropath"), "path": st.sampled_from(AVRO_PATHS), "matcher": matchers}),
        st.fixed_dictionaries(
            {"type": st.just("header"), "header": st.sampled_from(["Trace-Id", "absent"]), "matcher": matchers}
        ),
    ),
    max_size=3,
)

attributes = st.dictionaries(st.sampled_from(["type", "Subject", "flag", "count", "a.b", "data"]), texts, max_size=2)
vng_objects: st.SearchStrategy[Any] = st.recursive(
    st.builds(lambda word, pairs: {word: pairs}, st.sampled_from(["exact", "prefix", "suffix"]), attributes),
    lambda inner: (
        st.builds(lambda word, parts: {word: parts}, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3))
        | inner.map(lambda part: {"not": part})
    ),
    max_leaves=6,
)
vng = st.lists(vng_objects, max_size=3) | vng_objects

DOCUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "horizon": horizon,
    "horizon-simple": simple,
    "hermes": hermes,
    "vng": vng,
}

parsed: st.SearchStrategy[Filter] = st.one_of(
    *(documents.map(lambda raw, dialect=dialect: parse(dialect, raw)) for dialect, documents in DOCUMENTS.items())
)
all_filters = all_filters_with(parsed)

scraps = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=5) | st.sampled_from(PATHS)
words = st.sampled_from(
    [
        *("and", "or", "eq", "in", "nin", "rx", "ct", "not", "field", "value", "type", "path", "matcher", "header"),
        "exact",
        "all",
    ]
)
nonsense: st.SearchStrategy[Any] = st.recursive(
    scraps | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
