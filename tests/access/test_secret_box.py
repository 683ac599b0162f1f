from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_name, a_subscription
from tidings.access.secret_box import Box, Unreadable, sealing_key, unreadable
from tidings.access.secrets import Secret, hub_key, without_secrets
from tidings.config import load
from tidings.errors import Misconfigured
from tidings.registry.credentials import Basic, OAuth, SigningKey, SigningVersion, TokenCredential, is_sealed
from tidings.registry.model import Provider, Push, Subscription
from tidings.registry.rules.credentials import sealed

BOX = Box(Secret(b"k" * 32))


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_what_is_sealed_opens_in_its_place_and_is_the_same_each_time(text: str, place: str) -> None:
    hidden = BOX.seal(place, text)
    assert is_sealed(hidden)
    assert BOX.open(place, hidden) == text
    assert BOX.seal(place, text) == hidden == BOX.seal(place, hidden)


@pytest.mark.parametrize(("key", "place"), [(b"k" * 32, "elsewhere"), (b"x" * 32, "here")])
def test_it_opens_neither_in_another_place_nor_with_another_key(key: bytes, place: str) -> None:
    hidden = BOX.seal("here", "hush")
    with pytest.raises(Unreadable) as refused:
        Box(Secret(key)).open(place, hidden)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("text", ["sealed:", "sealed:abc", "sealed:!", f"sealed:{'A' * 60}"])
def test_a_secret_that_only_looks_sealed_is_sealed_all_the_same(text: str) -> None:
    hidden = BOX.seal("here", text)
    assert BOX.open("here", hidden) in (text, "")
    assert text == "sealed:" or hidden != text


def test_a_value_from_before_there_were_seals_is_read_as_it_is() -> None:
    assert BOX.open("here", "Bearer plain") == "Bearer plain"


def test_every_secret_of_a_subscription_is_sealed() -> None:
    key = SigningKey(version=SigningVersion.V1, secret="whsec_hush")
    for credential in (
        Basic(user="u", password="hush"),
        TokenCredential(token="hush", refresh="hush", refresh_at="https://a.example/"),
        OAuth(provider="p", user="u", password="hush"),
    ):
        push = Push(url="http://a.example/", headers={"X-Any": "hush"}, signing=(key,), credential=credential)
        found = sealed(a_subscription("billing", delivery=push), BOX.seal)
        assert isinstance(found, Subscription)
        assert "hush" not in repr(found)
        assert sealed(found, BOX.seal) == found
    provider = Provider(name=a_name("p"), token_endpoint="https://a.example/", client_id="c", client_secret="hush")
    assert "hush" not in repr(sealed(provider, BOX.seal))


def test_secrets_of_one_subscription_do_not_open_for_another() -> None:
    first = sealed(a_subscription("first", delivery=Push(url="http://a.example/", headers={"x": "hush"})), BOX.seal)
    assert isinstance(first.delivery, Push)
    assert BOX.open("subscription/first/headers/x", first.delivery.headers["x"]) == "hush"
    with pytest.raises(Unreadable):
        BOX.open("subscription/second/headers/x", first.delivery.headers["x"])


def test_documents_that_another_key_sealed_are_told() -> None:
    mine = sealed(a_subscription("mine", delivery=Push(url="http://a.example/", headers={"x": "hush", "y": "hush"})), BOX.seal)
    theirs = sealed(
        a_subscription("theirs", delivery=Push(url="http://a.example/", headers={"x": "hush"})), Box(Secret(b"x")).seal
    )
    assert unreadable([mine, theirs, a_subscription("pulled")], BOX) == ["theirs"]


def test_documents_are_shown_without_their_secrets() -> None:
    shown = without_secrets(
        {"delivery": {"headers": {"Authorization": "old", "x": "sealed:abc", "y": "seen"}, "signing": [{"secret": "sealed:a"}]}}
    )
    assert shown == {"delivery": {"headers": {"Authorization": "***", "x": "***", "y": "seen"}, "signing": [{"secret": "***"}]}}


def test_the_key_comes_from_the_settings_or_from_the_data_folder(tmp_path: Path) -> None:
    assert sealing_key(load(environ={}).access, tmp_path) == hub_key(tmp_path)
    own = load(environ={"TIDINGS_ACCESS_KEY": "x" * 24}).access
    assert sealing_key(own, tmp_path) == Secret(b"x" * 24)
    with pytest.raises(Misconfigured, match="too short"):
        sealing_key(load(environ={"TIDINGS_ACCESS_KEY": "short"}).access, tmp_path)
