"""Laws: nothing but a refusal while compiling, nothing but exceeded work while finding, and locations that lead to the values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.errors import FilterSyntaxError
from tidings.filters.jsonpath import Flavor, JsonPath, Location, Work, WorkExceeded, compile
from tidings.filters.payload import MISSING, dig

FLAVORS: list[Flavor] = ["rfc9535", "jayway"]

NAMES = st.sampled_from(["a", "b", "c", "a b", "ü", "'", '"', "0", "length"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals(allow_nan=False)
    | NAMES
    | st.text(max_size=5)
    | st.sampled_from([10**4_000, Decimal("1e999999"), float(10**15), "5", "5.0", "(", "a+"])
)
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)

WORDS = (
    "$ @ . .. * [ ] ( ) ? ?( 'a' \"b\" a b 0 -1 1 : , ! && || == != < >= =~ /a/ /(a/i true null 1.5 length( count( match( value( "
    "size empty in .sum() .length() .concat( \\ ' { } ~"
)
BITS = st.sampled_from([*WORDS.split(), " ", " in ", "\u0000", "\ud800"])
TEXTS = (
    st.lists(BITS, max_size=14).map("".join)
    | st.lists(BITS, max_size=10).map(lambda bits: "$" + "".join(bits))
    | st.text(max_size=20)
)


@st.composite
def paths(draw: st.DrawFn, flavor: Flavor, depth: int = 2) -> str:
    """A path that compiles."""
    return "$" + "".join(draw(st.lists(segments(flavor, depth), max_size=4)))


def segments(flavor: Flavor, depth: int) -> st.SearchStrategy[str]:
    plain = [
        ".a",
        ".b",
        "['a']",
        "[0]",
        "[-1]",
        "[1:]",
        "[:2]",
        "[0:2]",
        ".*",
        "[*]",
        "..a",
        "..*",
        "..[0]",
        "['a','b']",
        "[0,1]",
    ]
    if depth == 0:
        return st.sampled_from(plain)
    return st.sampled_from(plain) | expressions(flavor, depth - 1).map(lambda test: f"[?({test})]")


@st.composite
def expressions(draw: st.DrawFn, flavor: Flavor, depth: int) -> str:
    one, other = draw(operands(flavor, depth)), draw(operands(flavor, depth))
    if flavor == "jayway":
        sign = draw(
            st.sampled_from(
                ["==", "!=", "<", ">=", "===", "in", "nin", "subsetof", "anyof", "noneof", "contains", "size", "empty"]
            )
        )
        return draw(st.sampled_from([f"{one} {sign} {other}", f"!({one} {sign} {other})", f"{one} =~ /a.*/i", "@.a && !@.b"]))
    return draw(
        st.sampled_from(
            [f"{one} == {other}", f"!({one} < {other})", f"match({one}, 'a.*')", f"search({one}, $.a)", "@.a || !@..b"]
        )
    )


def operands(flavor: Flavor, depth: int) -> st.SearchStrategy[str]:
    simple = st.sampled_from(["@", "@.a", "@[0]", "$.a", "1", "1.5", "-2e3", "'a'", '"5"', "true", "null"])
    if flavor == "rfc9535":
        return simple | st.sampled_from(["length(@)", "count(@..*)", "value(@.*)"])
    deeper = paths(flavor, depth).map(lambda path: "@" + path[1:])
    return simple | deeper | st.sampled_from(["@.length()", "@.sum()", "@.keys()", "['a', 1]", "@.concat($.a)", "@.stddev()"])


def found(path: JsonPath, document: object) -> tuple[tuple[object, ...], tuple[Location, ...]]:
    result = path.find(document, Work(5_000))
    return result.values, result.locations


@pytest.mark.parametrize("flavor", FLAVORS)
@given(text=TEXTS, document=DOCUMENTS)
@example(text="$[?@ ==\u0000", document=None)
def test_any_text_is_refused_or_runs(flavor: Flavor, text: str, document: Any) -> None:
    try:
        path = compile(text, flavor)
    except FilterSyntaxError:
        return
    try:
        found(path, document)
    except WorkExceeded:
        return


@pytest.mark.parametrize("flavor", FLAVORS)
@given(data=st.data(), document=DOCUMENTS)
def test_every_value_is_at_its_location(flavor: Flavor, data: st.DataObject, document: Any) -> None:
    path = compile(data.draw(paths(flavor)), flavor)
    try:
        values, locations = found(path, document)
    except WorkExceeded:
        return
    if len(values) != len(locations):
        assert flavor == "jayway" and "'a','b'" in path.text
        return
    if "'a','b'" not in path.text:
        assert all(dig(document, location) is value for value, location in zip(values, locations, strict=True))


@pytest.mark.parametrize("flavor", FLAVORS)
@given(data=st.data(), document=DOCUMENTS)
def test_a_plain_path_is_direct_access(flavor: Flavor, data: st.DataObject, document: Any) -> None:
    steps = data.draw(st.lists(NAMES | st.integers(0, 3), max_size=4))
    path = compile("$" + "".join(f"[{written(step)}]" for step in steps), flavor)
    assert path.singular == tuple(steps)
    result = path.find(document)
    there = dig(document, tuple(steps))
    assert result.missing is (there is MISSING)
    assert result.missing or result.values[0] is there


def written(step: str | int) -> str:
    return str(step) if isinstance(step, int) else "'" + step.replace("'", "\\'") + "'"
