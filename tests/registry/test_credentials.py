"""What credentials, providers and addresses may say."""

from __future__ import annotations

import pytest

from tests.builders import a_name, a_subscription, a_topic
from tests.registry.worlds import a_world, put, without
from tidings.errors import Conflict, InvalidDocument
from tidings.registry.credentials import (
    Basic,
    Credential,
    GatewayToken,
    GrantType,
    OAuth,
    SigningKey,
    SigningVersion,
    TokenCredential,
)
from tidings.registry.model import Provider, Push
from tidings.registry.rules import check
from tidings.registry.rules.callback_addresses import STRICT, SinkRules, sink_fault, taken_out

PROVIDER = Provider(name=a_name("login"), token_endpoint="https://login.example/token", client_id="hub", client_secret="hush")


def with_credential(credential: Credential | None, **push: object) -> object:
    return a_subscription(delivery=Push(url="https://a.example/", credential=credential, **push))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "credential",
    [
        Basic(user="u", password=""),
        Basic(user="ü", password="p:p ä"),
        TokenCredential(token="abc", expires=None),
        TokenCredential(token="abc", refresh="def", refresh_at="https://a.example/token"),
        OAuth(provider="login"),
        OAuth(provider="hermes:login", grant=GrantType.PASSWORD, user="u", password="p"),
        GatewayToken(request_path="/horizon-aws/callback/v1", publisher="shop", subscriber="billing"),
        TokenCredential(token=f"sealed:{'A' * 6000}"),
    ],
)
def test_credentials_that_can_be_used(credential: Credential) -> None:
    check([with_credential(credential)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("credential", "path"),
    [
        (Basic(user="a:b", password="p"), "user"),
        (Basic(user="", password="p"), "user"),
        (Basic(user="u", password="p\r\nHost: x"), "password"),
        (TokenCredential(token=""), "token"),
        (TokenCredential(token="a b"), "token"),
        (TokenCredential(token="sealed:a b"), "token"),
        (TokenCredential(token="a", token_type="Bearer x"), "tokenType"),
        (TokenCredential(token="a", refresh="b"), "refreshAt"),
        (TokenCredential(token="a", refresh_at="https://a.example/"), "refreshAt"),
        (OAuth(provider="no name!"), "provider"),
        (OAuth(provider="login", grant=GrantType.PASSWORD), "user"),
        (OAuth(provider="login", user="u", password="p"), "user"),
        (GatewayToken(request_path="", publisher="a", subscriber="b"), "requestPath"),
    ],
)
def test_credentials_that_cannot_be_used_are_refused_without_telling_them(credential: Credential, path: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        check([with_credential(credential)])  # type: ignore[list-item]
    assert f"delivery.credential.{path}" in {fault.attribute for fault in refused.value.faults}
    assert "Host: x" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"token_endpoint": "ftp://a.example/"}, "tokenEndpoint"),
        ({"token_endpoint": "https://u:p@a.example/"}, "tokenEndpoint"),
        ({"client_id": ""}, "clientId"),
        ({"first_delay": 3601.0}, "firstDelay"),
        ({"longest_delay": -1.0}, "longestDelay"),
        ({"request_timeout": 0.05}, "requestTimeout"),
        ({"socket_timeout": 61.0}, "socketTimeout"),
    ],
)
def test_a_provider_has_an_address_a_client_and_bounds(change: dict[str, object], path: str) -> None:
    from msgspec.structs import replace

    check([PROVIDER])
    with pytest.raises(InvalidDocument) as refused:
        check([replace(PROVIDER, **change)])
    assert [fault.attribute for fault in refused.value.faults] == [path]


def test_a_provider_must_be_there_before_it_is_asked_for() -> None:
    asking = with_credential(OAuth(provider="login"))
    with pytest.raises(InvalidDocument, match="there is no provider login"):
        a_world(a_topic(), asking)  # type: ignore[arg-type]
    world = put(a_world(a_topic()), PROVIDER, asking)  # type: ignore[arg-type]
    assert world.snapshot.providers == {a_name("login"): PROVIDER}
    with pytest.raises(Conflict, match="the provider login is used by billing"):
        without(world, Provider, "login")
    assert not without(put(world, with_credential(None)), Provider, "login").snapshot.providers  # type: ignore[arg-type]


def test_a_subscription_has_a_bounded_number_of_signing_keys() -> None:
    keys = (SigningKey(version=SigningVersion.V1, secret="whsec_a"),) * 11
    with pytest.raises(InvalidDocument, match="at most 10"):
        check([with_credential(None, signing=keys)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "url", ["http://a.example/", "https://u:p@a.example/", "https://a.example/#x", "ftp://a.example/", "/x"]
)
def test_strict_doors_take_plain_https_only(url: str) -> None:
    assert sink_fault(url, STRICT, lambda host: False)
    assert sink_fault("https://a.example/in?x=1", STRICT, lambda host: False) is None
    assert sink_fault("http://10.0.0.1/", STRICT, lambda host: host == "10.0.0.1") is None


@pytest.mark.parametrize(
    ("rules", "url", "taken"),
    [
        (SinkRules(user_info=True), "http://u:p@a.example/", True),
        (SinkRules(), "http://u:p@a.example/", False),
        (SinkRules(), "http://a.example/", True),
        (SinkRules(user_info=True), "ftp://a.example/", False),
    ],
)
def test_the_other_doors_have_rules_of_their_own(rules: SinkRules, url: str, taken: bool) -> None:
    assert (sink_fault(url, rules, lambda host: False) is None) is taken


@pytest.mark.parametrize(
    ("url", "plain", "basic"),
    [
        ("http://a.example/x", "http://a.example/x", None),
        ("http://u:p@a.example:81/x?y=1", "http://a.example:81/x?y=1", Basic(user="u", password="p")),
        ("http://u@a.example/", "http://a.example/", Basic(user="u", password="")),
        ("http://u%40x:p%3A%2F@[::1]:81/", "http://[::1]:81/", Basic(user="u@x", password="p:/")),
        ("http://[broken", "http://[broken", None),
    ],
)
def test_user_and_password_leave_the_address(url: str, plain: str, basic: Basic | None) -> None:
    assert taken_out(url) == (plain, basic)
