"""Names and patterns, as tables."""

import pytest

from tests.builders import a_name
from tidings.errors import Malformed
from tidings.registry.model import Name
from tidings.registry.rules import covers, parse_name


@pytest.mark.parametrize(
    ("text", "namespace", "name"),
    [
        ("orders", "default", "orders"),
        ("Orders.v1_x-2", "default", "Orders.v1_x-2"),
        ("9", "default", "9"),
        ("hermes:orders", "hermes", "orders"),
        ("horizon/prod:orders", "horizon/prod", "orders"),
        ("default:orders", "default", "orders"),
        ("n" * 253, "default", "n" * 253),
    ],
)
def test_a_name_is_read(text: str, namespace: str, name: str) -> None:
    assert parse_name(text) == Name(namespace, name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "~own",
        ".hidden",
        "-x",
        "a b",
        "a/b",
        "a\n",
        "größe",
        "a:b:c",
        ":a",
        "a:",
        "/a:b",
        "a//b:c",
        "a/:c",
        "n" * 254,
        "n" * 254 + ":a",
        "\u0661",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        parse_name(text)


@pytest.mark.parametrize("text", ["orders", "hermes:orders", "horizon/prod:x"])
def test_a_name_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_name(text)) == text


@pytest.mark.parametrize(
    ("pattern", "topic", "covered"),
    [
        ("*", "orders", True),
        ("*", "hermes:orders", True),
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("orders", "hermes:orders", False),
        ("orders*", "orders2", True),
        ("h*", "hermes:orders", False),
        ("hermes:*", "hermes:orders", True),
        ("hermes:*", "orders", False),
        ("horizon/*:*", "horizon/prod:orders", True),
        ("horizon/*:*", "horizon:orders", False),
        ("default:orders", "orders", True),
        ("", "orders", False),
    ],
)
def test_a_pattern_covers_topics_of_its_own_namespace_only(pattern: str, topic: str, covered: bool) -> None:
    assert covers([pattern], a_name(topic)) is covered


def test_no_pattern_covers_nothing() -> None:
    assert not covers([], a_name("orders"))
