"""Projection: tables of what stays, and laws that hold for every document."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance import SHARED_DATA
from tidings.errors import FilterSyntaxError
from tidings.filters.projection import (
    MAX_CHARACTERS,
    MAX_PATHS,
    MAX_STEPS,
    Projection,
    ProjectionMode,
    Syntax,
    project,
    projection,
    warnings_of,
)

ITEMS = '{"items":[{"name":"x","v":1},{"name":"y","v":2}]}'
ORDER = '{ "id" : 12345678901234567890, "total": {"amount":1.0, "tax" : 1e400},"none":null }'


def include(data: str, *paths: str, syntax: str = "dotted") -> str | None:
    left = project(projection("include", paths, syntax), data.encode())
    return None if left is None else left.decode()


def exclude(data: str, *paths: str, syntax: str = "dotted") -> str | None:
    left = project(projection("exclude", paths, syntax), data.encode())
    return None if left is None else left.decode()


@pytest.mark.parametrize(
    ("data", "paths", "left"),
    [
        (ORDER, ["id"], '{"id" : 12345678901234567890}'),
        (ORDER, ["total.amount"], '{"total": {"amount":1.0}}'),
        (ORDER, ["total"], '{"total": {"amount":1.0, "tax" : 1e400}}'),
        (ORDER, ["total", "total.tax"], '{"total": {"amount":1.0, "tax" : 1e400}}'),
        (ORDER, ["none", "id"], '{"id" : 12345678901234567890,"none":null}'),
        (ORDER, ["nothing", "id.deeper", "total.nothing", "none.x"], "{}"),
        (ITEMS, ["items.0.name"], '{"items":[{"name":"x"}]}'),
        (ITEMS, ["items.1"], '{"items":[{"name":"y","v":2}]}'),
        (ITEMS, ["items.*.name"], '{"items":[{"name":"x"},{"name":"y"}]}'),
        (ITEMS, ["items.1.v", "items.*.name"], '{"items":[{"name":"x"},{"name":"y","v":2}]}'),
        (ITEMS, ["items.01", "items.2", "items.-1", "items.name"], "{}"),
        ('{"a":[[1,2],[3]]}', ["a.*.0"], '{"a":[[1],[3]]}'),
        ('{"o":{"*":1,"b":2}}', ["o.*"], '{"o":{"*":1}}'),
        ('{"0":{"a":1}}', ["0.a"], '{"0":{"a":1}}'),
        ('{"x.y":1,"x":{"y":2}}', ["x.y"], '{"x":{"y":2}}'),
        ('{"$":{"a":1},"a":2}', ["$.a"], '{"$":{"a":1}}'),
        ('{"\\u0061":1,"b":2}', ["a"], '{"\\u0061":1}'),
        ('{"ä":1,"b":"}]"}', ["ä"], '{"ä":1}'),
        ('{"a":{},"b":[]}', ["a.x", "b.*"], "{}"),
        ('{"a":{},"b":[]}', ["a", "b"], '{"a":{},"b":[]}'),
        ("[1,2]", ["a"], "[]"),
        ('[{"a":1,"b":2},3]', ["*.a"], '[{"a":1}]'),
        ("5", ["a"], "{}"),
        ("null", ["*"], "{}"),
    ],
)
def test_include_keeps_what_the_paths_find_and_nothing_else(data: str, paths: list[str], left: str) -> None:
    assert include(data, *paths) == left


@pytest.mark.parametrize(
    ("data", "paths", "left"),
    [
        (ORDER, ["total.tax"], '{"id" : 12345678901234567890,"total": {"amount":1.0},"none":null}'),
        (ORDER, ["id", "total", "none"], "{}"),
        (ORDER, ["nothing", "id.deeper"], ORDER),
        (ITEMS, ["items.0"], '{"items":[{"name":"y","v":2}]}'),
        (ITEMS, ["items.*.v"], '{"items":[{"name":"x"},{"name":"y"}]}'),
        (ITEMS, ["items.*"], '{"items":[]}'),
        (ITEMS, ["items.0.v", "items.*.name"], '{"items":[{},{"v":2}]}'),
        ('{"a":1,"a":2,"b":3}', ["a"], '{"b":3}'),
        ('{"s":"a\\"b{[","t":1}', ["t"], '{"s":"a\\"b{["}'),
        ("[1,2,3]", ["1"], "[1,3]"),
        (" [ 1 , 2 ] ", ["5"], " [ 1 , 2 ] "),
        ("5", ["a"], "5"),
    ],
)
def test_exclude_takes_away_what_the_paths_find_and_nothing_else(data: str, paths: list[str], left: str) -> None:
    assert exclude(data, *paths) == left


@pytest.mark.parametrize(
    ("mode", "path", "left"),
    [
        ("include", "$.items[*].name", '{"items":[{"name":"x"},{"name":"y"}]}'),
        ("include", "$.items[?(@.v > 1)]", '{"items":[{"name":"y","v":2}]}'),
        ("include", "$..v", '{"items":[{"v":1},{"v":2}]}'),
        ("include", "$.nothing", "{}"),
        ("include", "$", ITEMS),
        ("exclude", "$.items[0]", '{"items":[{"name":"y","v":2}]}'),
        ("exclude", "$..v", '{"items":[{"name":"x"},{"name":"y"}]}'),
        ("exclude", "$", "{}"),
    ],
)
def test_jsonpaths_choose_places(mode: str, path: str, left: str) -> None:
    assert project(projection(mode, [path], "jsonpath"), ITEMS.encode()) == left.encode()


def test_a_predicate_leaves_the_shortened_array_in_place() -> None:
    assert include('{"numbers":[0,1,2,3,4,5]}', "$.numbers[?(@ < 3)]", syntax="jsonpath") == '{"numbers":[0,1,2]}'


def test_jsonpaths_that_would_look_at_too_much_choose_nothing_at_all() -> None:
    wide = json.dumps([[n] for n in range(100_000)])
    assert exclude(wide, "$..*", syntax="jsonpath") is None


def test_a_broken_jsonpath_that_is_met_all_the_same_is_read_as_dotted() -> None:
    met = Projection(ProjectionMode.INCLUDE, ("$.[[",), Syntax.JSONPATH)
    assert project(met, b'{"$":{"[[":1},"a":2}') == b'{"$":{"[[":1}}'


@pytest.mark.parametrize("data", [b"", b"{", b"plain text", b'{"a":1}x', b"\xff", b'{"a":\xff}', b"[" * 501 + b"]" * 501])
def test_what_is_no_json_has_no_parts_to_choose(data: bytes) -> None:
    assert project(projection("exclude", ["a"]), data) is None


def test_without_paths_nothing_changes() -> None:
    assert include(ORDER) == ORDER
    assert exclude(ORDER) == ORDER


@pytest.mark.parametrize(
    ("mode", "paths", "syntax", "at"),
    [
        ("INCLUDE", ["a"], "dotted", "mode"),
        ("include", ["a"], "xpath", "syntax"),
        ("include", ["a", ""], "dotted", r"paths\[1\]"),
        ("include", ["a", 5], "dotted", r"paths\[1\]"),
        ("include", ["a.b" + ".c" * 64], "dotted", r"paths\[0\]"),
        ("include", ["\ud800"], "dotted", "surrogate"),
        ("include", ["$.a", "$.b["], "jsonpath", r"paths\[1\]"),
        ("include", ["a"] * (MAX_PATHS + 1), "dotted", "at most 256"),
        ("include", ["a" * 20_000], "dotted", r"paths\[0\]"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_with_its_place(mode: str, paths: list[Any], syntax: str, at: str) -> None:
    with pytest.raises(FilterSyntaxError, match=at):
        projection(mode, paths, syntax)


def test_a_dotted_path_that_looks_like_jsonpath_is_warned_of() -> None:
    assert [path for path, _ in warnings_of(projection("include", ["a", "$.a", "$a"]))] == ["$.a"]
    assert not list(warnings_of(projection("include", ["$.a"], "jsonpath")))


names = st.sampled_from(["a", "b", "c", "*", "0", "1", "ä", 'q"'])
scalars = st.sampled_from(["1", "1.0", "1e400", "-0", "12345678901234567890", '"x"', '"\\"]}"', "true", "null", '""'])
spaces = st.sampled_from(["", "", " ", "\n\t "])


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """JSON text with white space anywhere and numbers in any spelling; names in an object differ."""
    kind = draw(st.sampled_from("soa" if depth else "s"))
    gap = draw(spaces)
    if kind == "s":
        return draw(scalars)
    if kind == "a":
        inner = draw(st.lists(documents(depth - 1), max_size=3))
        return f"[{gap}{f'{gap},{gap}'.join(inner)}{gap}]"
    members = draw(st.dictionaries(names, documents(depth - 1), max_size=3))
    written = [f"{json.dumps(name)}{gap}:{gap}{text}" for name, text in members.items()]
    return f"{{{gap}{f'{gap},{gap}'.join(written)}{gap}}}"


paths = st.lists(st.lists(names, min_size=1, max_size=3).map(".".join), max_size=4)


def value(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


@given(documents(), paths)
def test_whatever_is_left_agrees_with_taking_the_decoded_document_apart(text: str, chosen: list[str]) -> None:
    steps = [path.split(".") for path in chosen]
    for mode in ("include", "exclude"):
        left = project(projection(mode, chosen), text.encode())
        assert left is not None
        wanted = value(text) if not chosen else plainly(mode, value(text), steps)
        assert value(left.decode()) == wanted


def plainly(mode: str, root: Any, steps: list[list[str]]) -> Any:
    if not isinstance(root, dict | list):
        return {} if mode == "include" else root
    left = (kept if mode == "include" else stripped)(root, steps)
    return type(root)() if left is None else left


def below(child: str, around: Any, steps: list[list[str]]) -> list[list[str]]:
    star = isinstance(around, list)
    return [path[1:] for path in steps if path and (path[0] == child or (star and path[0] == "*"))]


def kept(found: Any, steps: list[list[str]]) -> Any:
    if [] in steps:
        return found
    if isinstance(found, dict):
        members = {name: kept(child, below(name, found, steps)) for name, child in found.items() if below(name, found, steps)}
        return {
            name: child for name, child in members.items() if child is not None or is_null(found[name], name, found, steps)
        } or None
    if isinstance(found, list):
        chosen = [(n, kept(child, below(str(n), found, steps))) for n, child in enumerate(found) if below(str(n), found, steps)]
        return [child for n, child in chosen if child is not None or is_null(found[n], str(n), found, steps)] or None
    return None


def is_null(child: Any, name: str, around: Any, steps: list[list[str]]) -> bool:
    """A null that is wanted looks like nothing found."""
    return child is None and [] in below(name, around, steps)


def stripped(found: Any, steps: list[list[str]]) -> Any:
    if isinstance(found, dict):
        return {n: stripped(c, below(n, found, steps)) for n, c in found.items() if [] not in below(n, found, steps)}
    if isinstance(found, list):
        parts = [(child, below(str(n), found, steps)) for n, child in enumerate(found)]
        return [stripped(child, rest) for child, rest in parts if [] not in rest]
    return found


@given(documents())
def test_excluding_nothing_is_the_identity_byte_for_byte(text: str) -> None:
    assert exclude(text, "no such member", "nor.this") == text


@given(documents())
def test_including_every_member_is_the_identity_byte_for_byte(text: str) -> None:
    root = value(text)
    if isinstance(root, dict | list) and root:
        every = list(root) if isinstance(root, dict) else ["*"]
        if not any("." in name for name in every):
            assert include(text, *every) == text


@given(
    st.binary(max_size=60), st.lists(st.text(max_size=5), max_size=3), st.sampled_from(ProjectionMode), st.sampled_from(Syntax)
)
def test_nothing_is_raised_whatever_comes(data: bytes, chosen: list[str], mode: ProjectionMode, syntax: Syntax) -> None:
    left = project(Projection(mode, tuple(chosen), syntax), data)
    assert left is None or len(left) <= max(len(data), 2)


def test_a_deep_document_is_projected_without_running_out_of_stack() -> None:
    deep = '{"a":' * 450 + '{"x":1,"y":2}' + "}" * 450
    assert exclude(deep, "$..x", syntax="jsonpath") == '{"a":' * 450 + '{"y":2}' + "}" * 450


def test_the_limits_of_a_path_are_its_last_allowed_length_and_depth() -> None:
    assert projection("include", [".".join("a" * MAX_STEPS), "a" * MAX_CHARACTERS]).paths
    for too_much in (".".join("a" * (MAX_STEPS + 1)), "a" * (MAX_CHARACTERS + 1)):
        with pytest.raises(FilterSyntaxError, match=r"paths\[0\]"):
            projection("include", [too_much])


VECTORS = SHARED_DATA / "filters" / "horizon.json"


def vectors() -> list[Any]:
    if not VECTORS.exists():
        return []
    found = json.loads(VECTORS.read_text("utf-8"))["filter_vectors"]
    return [v for v in found if "payload" in v["expected"] and not v.get("quirk") and not isinstance(v["data"], str)]


@pytest.mark.skipif(not vectors(), reason="the shared vectors are not there")
@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["id"])
def test_the_vectors_of_response_filters(vector: Any) -> None:
    data: bytes | None = json.dumps(vector["data"]).encode()
    for side in ("publisherTrigger", "trigger"):
        trigger = vector.get(side) or {}
        mode = ProjectionMode(trigger.get("responseFilterMode", "INCLUDE").lower())
        syntax = Syntax.JSONPATH if vector.get("jsonPathFeature") else Syntax.DOTTED
        assert data is not None
        data = project(Projection(mode, tuple(trigger.get("responseFilter") or ()), syntax), data)
    assert data is not None
    assert json.loads(data) == vector["expected"]["payload"]
