"""No path and no document can make an evaluation explode: the work is counted, and shared by all that one evaluation does."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.filters.jsonpath import Flavor, Work, WorkExceeded, compile
from tidings.filters.jsonpath.work import LIMIT

TEXTS = {"a": ["x" * 50_000] * 2, "b": list(range(3_000))}


def deep(levels: int) -> Any:
    value: Any = {"a": 1}
    for _ in range(levels):
        value = {"a": [value]}
    return value


HOSTILE: list[tuple[Flavor, str, Any]] = [
    ("rfc9535", "$..[?count(@..*) > 0]", deep(400)),
    ("rfc9535", "$..[?@..[?@..[?@..*]]]", deep(300)),
    ("rfc9535", "$..*..*..*..*", deep(200)),
    ("rfc9535", "$" + "[*,*,*]" * 10, deep(20) | {"b": [[[[[[[[[[1]]]]]]]]]]}),
    ("rfc9535", "$[" + ",".join(["0"] * 1_000) + "][" + ",".join(["0"] * 1_000) + "]", [[0]]),
    ("rfc9535", "$[0:" + "9" * 15 + "]", [0] * (LIMIT + 1)),
    ("rfc9535", "$.b[?$.a[0] == $.a[1]]", TEXTS),
    ("rfc9535", "$.b[?search($.a[0], 'y$')]", TEXTS),
    ("rfc9535", "$.b[?$ == $]", {"b": list(range(1_000))}),
    ("rfc9535", "$[?match('x', @)]", [f"({number}+)+" for number in range(1_000)]),
    ("jayway", "$..*..*..*..*", deep(200)),
    ("jayway", "$..[?(@..[?(@..[?(@..a)])])]", deep(300)),
    ("jayway", "$" + "['a','a'].*" * 20 + ".a", deep(60)),
    ("jayway", "$[" + ",".join(["0"] * 1_000) + "][" + ",".join(["0"] * 1_000) + "]", [[0]]),
    ("jayway", "$.b[?($.a[0] == $.a[1])]", TEXTS),
    ("jayway", "$.b[?($.a =~ /x+y/)]", TEXTS),
    ("jayway", "$.b[?($.b subsetof $.b)]", TEXTS),
    ("jayway", "$.b[?(@.concat($.a) == 'x')]", TEXTS),
    ("jayway", "$.concat(" + ",".join(["$"] * 1_000) + ")", TEXTS),
]


@pytest.mark.parametrize(("flavor", "path", "document"), HOSTILE)
def test_what_would_explode_stops_at_the_limit(flavor: Flavor, path: str, document: object) -> None:
    compiled = compile(path, flavor)
    with pytest.raises(WorkExceeded, match=str(LIMIT)):
        compiled.find(document)


def test_a_linear_scan_costs_about_what_the_document_holds() -> None:
    work = Work()
    assert len(compile("$..[?@[0] == 7]", "rfc9535").find([[[number]] for number in range(5_000)], work).values) == 1
    assert work.spent < 100_000


def test_work_is_shared_by_evaluations_that_are_given_the_same() -> None:
    work = Work(10)
    path = compile("$[*]", "rfc9535")
    path.find([1, 2, 3, 4, 5], work)
    with pytest.raises(WorkExceeded):
        path.find([1, 2, 3, 4, 5], work)


@pytest.mark.parametrize("flavor", ["rfc9535", "jayway"])
def test_a_document_may_be_deeper_than_the_stack(flavor: Flavor) -> None:
    document = deep(10_000)
    assert len(compile("$..a", flavor).find(document).values) == 10_001
    assert compile("$.a[?(@ == $.a[0])]", flavor).find(document).values


@pytest.mark.parametrize("flavor", ["rfc9535", "jayway"])
def test_the_longest_path_there_may_be_runs(flavor: Flavor) -> None:
    assert compile("$" + "[0]" * 63 + "[*]", flavor).find(deep(1)).values == ()
    nested = "@.a" + "[?(@.a" * 14 + ")]" * 14
    compile(f"$[?({nested})]", flavor).find(deep(100))
