"""Rights, as tables."""

import pytest

from tests.builders import a_name
from tidings.access.principals import EVERYONE, Principal, Right, require, rights_in
from tidings.errors import Forbidden, Unauthenticated
from tidings.registry.model import Name


def somebody(*rights: str, topics: tuple[str, ...] = ("*",)) -> Principal:
    return Principal("shop", frozenset(map(Right, rights)), topics)


@pytest.mark.parametrize(
    ("principal", "right", "topic", "allowed"),
    [
        (somebody("publish"), "publish", "orders", True),
        (somebody("publish"), "publish", None, True),
        (somebody("publish"), "subscribe", "orders", False),
        (somebody("publish"), "read", "orders", False),
        (somebody("publish", "subscribe", "read"), "admin", None, False),
        (somebody("admin"), "publish", "orders", True),
        (somebody("admin", topics=()), "read", "orders", True),
        (somebody("publish", topics=("orders",)), "publish", "orders", True),
        (somebody("publish", topics=("orders",)), "publish", "others", False),
        (somebody("publish", topics=("orders",)), "publish", "hermes:orders", False),
        (somebody("publish", topics=("hermes:*",)), "publish", "hermes:orders", True),
        (somebody("publish", topics=()), "publish", "orders", False),
        (somebody(), "read", None, False),
        (EVERYONE, "admin", None, True),
    ],
)
def test_each_right_stands_for_itself_and_admin_for_all(
    principal: Principal, right: str, topic: str | None, allowed: bool
) -> None:
    name = None if topic is None else a_name(topic)
    assert principal.may(Right(right), name) is allowed
    if allowed:
        require(principal, Right(right), name)
    else:
        with pytest.raises(Forbidden, match="shop may not"):
            require(principal, Right(right), name)


def test_nobody_may_nothing() -> None:
    with pytest.raises(Unauthenticated):
        require(None, Right.READ)


def test_a_refusal_names_caller_deed_topic_and_right() -> None:
    with pytest.raises(Forbidden) as refused:
        somebody("read").require(Right.PUBLISH, a_name("hermes:orders"))
    assert str(refused.value) == "shop may not publish to hermes:orders; expected the right publish on it"


@pytest.mark.parametrize(
    ("claim", "rights"),
    [
        ("tidings:publish tidings:read", {"publish", "read"}),
        ("publish read", {"publish", "read"}),
        (["tidings:admin", "openid"], {"admin"}),
        (["subscribe", 5, None], {"subscribe"}),
        ("openid profile other:publish", set()),
        ("PUBLISH", set()),
        ("", set()),
        ([], set()),
        (None, set()),
        (True, set()),
        ({"publish": True}, set()),
        (7, set()),
    ],
)
def test_rights_are_read_from_a_claim(claim: object, rights: set[str]) -> None:
    assert rights_in(claim) == {Right(right) for right in rights}


@pytest.mark.parametrize(
    ("realm", "namespace", "reached"),
    [
        ("", "horizon/prod", True),
        ("prod", "horizon/prod", True),
        ("play", "horizon/prod", False),
        ("play", "default", True),
        ("play", "hermes", True),
        ("play", "hermes/orders", True),
    ],
)
def test_a_token_of_a_realm_reaches_namespaces_of_that_realm_and_of_none(realm: str, namespace: str, reached: bool) -> None:
    admin = Principal("root", frozenset({Right.ADMIN}), realm=realm, divided=("horizon/",))
    assert admin.reaches(namespace) is reached
    assert admin.may(Right.READ, Name(namespace, "orders")) is reached


def test_a_refusal_for_the_realm_says_so() -> None:
    with pytest.raises(Forbidden, match=r"token of the realm play.*expected a token of the realm prod"):
        play = Principal("root", frozenset({Right.ADMIN}), realm="play", divided=("horizon/",))
        play.require(Right.READ, Name("horizon/prod", "orders"))
