"""The json-path dialect (HOR-75 to HOR-77, HER-119): what json-path 2.10 gives, but for what decision 005 lists."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

import pytest

from tidings.errors import FilterSyntaxError
from tidings.filters.jsonpath import FoundNodes, compile

MISSING: Final = "missing"

DOCUMENT: dict[str, Any] = json.loads(
    """{"s": "abc", "i": 5, "d": 5.5, "n": null, "b": true, "o": {"k": 1, "x": {"k": 2, "a": [1]}}, "arr": ["a", "b", "c"],
    "one": ["a"], "empty": [], "nums": [1, 2, 3.5], "num_s": "5", "a b": 1, "dash-key": "x", "x.y": "dot", "@at": 1,
    "objs": [{"t": "A", "v": 1, "tags": ["x", "y"]}, {"t": "B", "v": "5"}, {"v": null}, 7, "str", [1, 2]]}""",
    parse_float=Decimal,
)
A, B, C = DOCUMENT["objs"][:3]


def found(path: str, document: object = DOCUMENT) -> FoundNodes:
    return compile(path, "jayway").find(document)


def result(path: str, document: object = DOCUMENT) -> object:
    """The value of a definite path, the values of another as a list, or that it is missing."""
    there = found(path, document)
    if there.missing:
        return MISSING
    return there.values[0] if compile(path, "jayway").definite else list(there.values)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", DOCUMENT),
        ("@.s", "abc"),
        ("s", "abc"),
        ("o.k", 1),
        (".k", [1, 2]),
        ("$.['s']", "abc"),
        ('$["a b"]', 1),
        ("$['x.y']", "dot"),
        ("$.dash-key", "x"),
        ("$.@at", 1),
        (r"$['\u0073']", "abc"),
        ("$.n", None),
        ("$.zz", MISSING),
        ("$.zz.y", MISSING),
        ("$.s.y", MISSING),
        ("$.n.y", MISSING),
        ("$.o['k','zz']", {"k": 1}),
        ("$.o['y','zz']", {}),
        ("$['o','zz'].k", [1]),
        ("$.arr[0]", "a"),
        ("$.arr[-1]", "c"),
        ("$.arr[9]", MISSING),
        ("$.arr[-9]", MISSING),
        ("$.arr[0,2]", ["a", "c"]),
        ("$.arr[ 0 , 9 ]", ["a"]),
        ("$.s[0]", MISSING),
        ("$.s[0,1]", MISSING),
        ("$.s[0:1]", MISSING),
        ("$.arr[1:]", ["b", "c"]),
        ("$.arr[-2:]", ["b", "c"]),
        ("$.arr[:2]", ["a", "b"]),
        ("$.arr[:-1]", ["a", "b"]),
        ("$.arr[1:-1]", []),
        ("$.arr[-2:-1]", ["b"]),
        ("$.arr[-2:2]", ["b", "c", "a", "b"]),
        ("$.arr[5:]", []),
        ("$.arr[9][*]", []),
        ("$.o.*", [1, {"k": 2, "a": [1]}]),
        ("$.s[*]", []),
        ("$.objs[*].t", ["A", "B"]),
        ("$.zz[*].t", MISSING),
        ("$..t", ["A", "B"]),
        ("$..nope", []),
        ("$..o.k", [1]),
        ("$..o..k", [1, 2]),
        ("$..['t','v']", [{"t": "A", "v": 1}, {"t": "B", "v": "5"}]),
        ("$..objs[0].t", ["A"]),
        ("$..[0].t", ["A"]),
    ],
)
def test_a_path_finds_what_json_path_finds(path: str, expected: object) -> None:
    assert result(path) == expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("@.t", [A, B]),
        ("!@.t", [C, 7, "str", [1, 2]]),
        ("@.v", [A, B, C]),
        ("@.tags[*]", [A]),
        ("@.t == 'A'", [A]),
        ('@.t=="A"', [A]),
        ("@.t != 'A'", [B, C, 7, "str", [1, 2]]),
        ("@.v == 5", [B]),
        ("@.v == '5'", [B]),
        ("@.v == 5.0", []),
        ("@.v == '1.0'", [A]),
        ("@.v === 5", []),
        ("@.v > 0", [A]),
        ("@.v <= '5'", [B]),
        ("@.t < 'B'", [A]),
        ("@.t > 1", []),
        ("@.v == null", [C]),
        ("null == @.v", [C]),
        ("@.zz == null", []),
        ("@ > 5", [7]),
        ("@ == [1,2]", [[1, 2]]),
        ("@.tags == ['x', \"y\"]", [A]),
        ("@.t in ['A','C']", [A]),
        ("@.t IN ['A']", [A]),
        ("@.v in [5]", [B]),
        ("'x' in @.tags", [A]),
        ("@.t in 'A'", []),
        ("!(@.t in 'A')", []),
        ("@.t nin ['A']", [B, C, 7, "str", [1, 2]]),
        ("@.tags subsetof ['x','y','z']", [A]),
        ("@.tags anyof ['x','q']", [A]),
        ("@.tags noneof ['q']", [A]),
        ("@.tags noneof ['x']", []),
        ("@.tags contains 'x'", [A]),
        ("@.tags size 2", [A]),
        ("@.t size 1", [A, B]),
        ("@.tags empty false", [A]),
        ("@.t empty true", []),
        ("@.t =~ /[AB]/", [A, B]),
        ("@.t =~ /a/i", [A]),
        ("@.t =~ /x?A/", [A]),
        (r"@.v =~ /\d+/", [A, B]),
        ("@.zz =~ /.*/", [A, B, C, 7, "str", [1, 2]]),
        ("@.tags =~ /x/", [A]),
        ("/A/ =~ @.t", [A]),
        ("@.t == 'A' || @.t == 'B' && @.v == 1", [A]),
        ("(@.t == 'A' || @.t == 'B') && @.v == '5'", [B]),
        ("!(@.t == 'A') && @.t", [B]),
        ("@.t=='A'&&@.v==1", [A]),
        ("@.v == $.num_s", [B]),
        ("$.i == 5 && @.t", [A, B]),
        ("@.tags.length() > 1", [A]),
        ("@.tags[?(@ == 'x')] == ['x']", [A]),
        ("@['t'] == 'A'", [A]),
    ],
)
def test_a_predicate_keeps_what_json_path_keeps(test: str, expected: object) -> None:
    assert result(f"$.objs[?({test})]") == expected


def test_a_predicate_is_tried_on_an_object_itself() -> None:
    assert result("$.[?(@.d > 0.5)].s") == ["abc"]
    assert result("$.o[?(@.k == 2)]") == []
    assert result("$.s[?(@.k)]") == MISSING


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.nums.sum()", Decimal("6.5")),
        ("$.nums.sum($.i, 1)", Decimal("12.5")),
        ("$.nums.avg()", Decimal("6.5") / 3),
        ("$.nums.min()", 1),
        ("$.nums.max()", Decimal("3.5")),
        ("$.sum($.nums)", Decimal("6.5")),
        ("$.arr.sum()", MISSING),
        ("$.zz.sum()", MISSING),
        ("$.arr.length()", 3),
        ("$.o.length()", 2),
        ("$.s.length()", None),
        ("$.o.keys()", ["k", "x"]),
        ("$.arr.first()", "a"),
        ("$.one.last()", "a"),
        ("$.empty.first()", MISSING),
        ("$.arr.index(-1)", "c"),
        ("$.arr.concat($.i)", "abc5"),
        ('$.concat("x", $.s)', "xabc"),
        ("$.nums.append(4)", [1, 2, Decimal("3.5"), 4]),
        ("$..k.sum()", 3),
        ("$..arr.length()", 3),
        ("$..t.concat()", "AB"),
        ("$..nope.sum()", MISSING),
    ],
)
def test_a_function_at_the_end_gives_what_it_makes(path: str, expected: object) -> None:
    got = result(path)
    assert got == (pytest.approx(expected) if isinstance(expected, Decimal) else expected)
    assert found(path).locations == ()


def test_a_function_does_not_change_the_document() -> None:
    found("$.nums.append(4)")
    assert len(DOCUMENT["nums"]) == 3


@pytest.mark.parametrize("spread", ["[1, 3]", "[2, 4]"])
def test_the_standard_deviation_is_that_of_all(spread: str) -> None:
    assert result("$.stddev($)", json.loads(spread)) == 1


@pytest.mark.parametrize(
    ("path", "locations"),
    [
        ("$.o['k','x','zz']", (("o", "k"), ("o", "x"))),
        ("$.arr[-1]", (("arr", 2),)),
        ("$.objs[?(@.t)]", (("objs", 0), ("objs", 1))),
        ("$.o[?(@.k)]", (("o",),)),
        ("$..k", (("o", "k"), ("o", "x", "k"))),
    ],
)
def test_what_is_found_has_its_places(path: str, locations: object) -> None:
    assert found(path).locations == locations


@pytest.mark.parametrize(
    ("path", "singular"),
    [("$", ()), ("a.b[0]", ("a", "b", 0)), ("$.a[-1]", None), (".a", None), ("$['a','b']", None), ("$.a.length()", None)],
)
def test_plain_paths_say_so(path: str, singular: object) -> None:
    assert compile(path, "jayway").singular == singular


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("", 0),
        ("  ", 0),
        ("$a", 2),
        ("$.", 3),
        ("a.", 3),
        (" a.", 4),
        ("$..", 4),
        ("$...a", 4),
        ("$.a b", 4),
        ("$.a[", 5),
        ("$.[[", 4),
        ("$[]", 3),
        ("$[:]", 3),
        ("$[1:3:2]", 3),
        ("$[1,]", 3),
        ("$[99999999999]", 3),
        ("$['a',]", 7),
        ("$['a", 5),
        ("$[?]", 4),
        ("$[?(@.a]", 8),
        ("$[?()]", 5),
        ("$[?(@.a == )]", 12),
        ("$[?(@.a ~= 1)]", 9),
        ("$[?(@.a like 'x')]", 9),
        ("$[?(1)]", 6),
        ("$[?(!@.a == 1)]", 10),
        ("$[?(@.a =~ 'x')]", 12),
        ("$[?(@.a == /x/)]", 12),
        ("$[?(@.a =~ /(?=x)/)]", 12),
        ("$[?(@.a =~ /x/x)]", 12),
        ("$[?(@.a =~ /x)]", 12),
        ("$[?(@.a in [x])]", 13),
        ("$.a.sum().b", 10),
        ("$.a.total()", 5),
        ("$..sum()", 4),
        ("$.a]", 4),
        ("$['a']b", 7),
        (r"$['\ud800']", 3),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_column(path: str, column: int) -> None:
    with pytest.raises(FilterSyntaxError) as refused:
        compile(path, "jayway")
    assert refused.value.at == (f"column {column}" if column else "")
    assert refused.value.expected
