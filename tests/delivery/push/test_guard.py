"""Which addresses a callback may have, in every spelling."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.delivery.worlds import quick_settings
from tidings.delivery.push.egress.address_guard import BLOCKED, AddressBlocked, AddressRules, Guard, Unresolved, rules_of, told
from tidings.delivery.push.egress.urls import RequestUrl
from tidings.errors import Misconfigured

STRICT = AddressRules()


@pytest.mark.parametrize(
    "address",
    [
        # SSRF-03
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.9",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
        # SSRF-04, SSRF-05
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1",
        "100::1", "2001::1", "2001:1ff::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fdff::1", "fe80::1",
        "fe80::1%eth0", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_for_callbacks_are_blocked(address: str) -> None:
    assert not STRICT.allow("hooks.example", address)


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1",
        "172.15.255.255", "172.32.0.1", "192.0.1.1", "198.17.255.255", "198.20.0.1", "223.255.255.255",
        "2001:200::1", "2003::1", "2606:4700::1111", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::808:808",
    ],
)  # fmt: skip
def test_public_addresses_are_allowed(address: str) -> None:
    assert STRICT.allow("hooks.example", address)


def resolving(*answers: Sequence[str]) -> tuple[Guard, list[str]]:
    """A guard whose name server gives these answers, one after the other, and the names it was asked for."""
    asked: list[str] = []
    left = list(answers)

    async def lookup(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        if not left:
            raise OSError("no such name")
        return left.pop(0)

    return Guard(STRICT, lookup), asked


def judge(guard: Guard, url: str) -> Sequence[str]:
    origin = RequestUrl.parse(url).origin
    return asyncio.run(guard.addresses_of(origin.host, origin.port))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1:80/",
        "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:0:0:1]/",
        "http://①②⑦.0.0.1/", "http://%31%32%37.0.0.1/", "https://10.0.0.1:8443/x",
    ],
)  # fmt: skip
def test_a_literal_address_is_judged_as_the_client_reads_it(url: str) -> None:
    guard, asked = resolving()
    with pytest.raises(AddressBlocked):
        judge(guard, url)
    assert asked == []


@pytest.mark.parametrize("url", ["http://hooks.example/", "http://HOOKS.example./", "http://bücher.example/"])
def test_a_name_is_judged_by_what_it_resolves_to(url: str) -> None:
    with pytest.raises(AddressBlocked):
        judge(resolving(["192.168.7.7"])[0], url)
    assert judge(resolving(["1.2.3.4"])[0], url) == ["1.2.3.4"]


def test_one_blocked_address_spoils_the_answer() -> None:
    with pytest.raises(AddressBlocked):
        judge(resolving(["1.2.3.4", "10.0.0.1"])[0], "http://hooks.example/")


def test_the_refusal_names_the_host_and_not_the_address() -> None:
    with pytest.raises(AddressBlocked, match=r"hooks\.example") as caught:
        judge(resolving(["10.9.8.7"])[0], "http://hooks.example/")
    assert "10.9.8.7" not in str(caught.value)


def test_a_name_without_an_address_is_no_block() -> None:
    with pytest.raises(Unresolved):
        judge(resolving()[0], "http://hooks.example/")
    with pytest.raises(Unresolved):
        judge(resolving([])[0], "http://hooks.example/")


@pytest.mark.parametrize(
    ("setting", "listens_on", "allowed"),
    [
        ("auto", "127.0.0.1", True), ("auto", "localhost", True), ("auto", "::1", True), ("auto", "0.0.0.0", False),
        ("auto", "192.168.1.5", False), ("auto", "hub.example", False), ("yes", "0.0.0.0", True), ("no", "127.0.0.1", False),
    ],
)  # fmt: skip
def test_loopback_is_allowed_by_setting(tmp_path: Path, setting: str, listens_on: str, allowed: bool) -> None:
    settings = quick_settings(tmp_path, allow_loopback=setting)
    rules = rules_of(settings.push, replace(settings.server, host=listens_on), settings.access)
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert rules.allow("localhost", address) is allowed
    assert not rules.allow("localhost", "10.0.0.1")


@pytest.mark.parametrize(("setting", "allowed"), [("auto", False), ("yes", True)])
def test_loopback_is_allowed_by_itself_only_where_access_is_open(tmp_path: Path, setting: str, allowed: bool) -> None:
    settings = quick_settings(tmp_path, allow_loopback=setting)
    rules = rules_of(settings.push, settings.server, replace(settings.access, mode="tokens"))
    assert rules.allow("localhost", "127.0.0.1") is allowed


def test_the_operator_may_allow_networks_and_names(tmp_path: Path) -> None:
    settings = quick_settings(tmp_path, allow=["10.1.0.0/16", "fd00::/8", "hooks.internal"], allow_loopback="no")
    rules = rules_of(settings.push, settings.server, settings.access)
    assert rules.allow("anything", "10.1.2.3")
    assert rules.allow("anything", "::ffff:10.1.2.3")
    assert rules.allow("anything", "fd12::1")
    assert rules.allow("Hooks.Internal.", "192.168.1.1")
    assert not rules.allow("anything", "10.2.0.1")
    assert not rules.allow("other.internal", "192.168.1.1")


@pytest.mark.parametrize(
    ("pattern", "host", "allowed"),
    [
        ("hooks.internal", "hooks.internal", True), ("hooks.internal", "HOOKS.internal.", True),
        ("hooks.internal", "x.hooks.internal", False),
        ("*.hooks.internal", "a.hooks.internal", True), ("*.hooks.internal", "a.b.hooks.internal", True),
        ("*.hooks.internal", "hooks.internal", False), ("*.hooks.internal", "a.hooks.internal.evil.example", False),
        ("hook-*.internal", "hook-7.internal", True), ("hook-*.internal", "other.internal", False),
    ],
)  # fmt: skip
def test_hosts_are_allowed_by_patterns(tmp_path: Path, pattern: str, host: str, allowed: bool) -> None:
    settings = quick_settings(tmp_path, allow=[pattern], allow_loopback="no")
    rules = rules_of(settings.push, settings.server, settings.access)
    assert rules.allow(host, "10.0.0.1") is rules.names(host) is allowed


def test_what_the_operator_names_is_known_before_any_lookup(tmp_path: Path) -> None:
    settings = quick_settings(tmp_path, allow=["10.1.0.0/16"], allow_loopback="no")
    rules = rules_of(settings.push, settings.server, settings.access)
    assert rules.names("10.1.2.3") and rules.names("[::ffff:10.1.2.3]")
    assert not rules.names("10.2.0.1") and not rules.names("hooks.example")
    assert rules.blocks("127.0.0.1") and rules.blocks("[::1]")
    assert not rules.blocks("10.1.2.3") and not rules.blocks("hooks.example") and not rules.blocks("1.1.1.1")


@pytest.mark.parametrize(
    ("push", "sentence"),
    [
        ({"allow_loopback": "no"}, "callbacks may reach public addresses only"),
        ({"allow_loopback": "yes"}, "callbacks may reach public addresses and this machine itself (push.allow_loopback)"),
        (
            {"allow": ["10.1.0.0/16", "*.internal"]},
            "callbacks may reach public addresses and 10.1.0.0/16, *.internal, this machine itself because the hub listens on "
            "loopback only and access is open (push.allow_loopback)",
        ),
    ],
)
def test_what_is_allowed_is_told(tmp_path: Path, push: dict[str, object], sentence: str) -> None:
    settings = quick_settings(tmp_path, **push)
    assert told(rules_of(settings.push, settings.server, settings.access), settings.push) == sentence


EDGES = [
    ("0.0.0.0/8", None, "1.0.0.0"), ("10.0.0.0/8", "9.255.255.255", "11.0.0.0"), ("100.64.0.0/10", "100.63.255.255", "100.128.0.0"),
    ("127.0.0.0/8", "126.255.255.255", "128.0.0.0"), ("169.254.0.0/16", "169.253.255.255", "169.255.0.0"),
    ("172.16.0.0/12", "172.15.255.255", "172.32.0.0"), ("192.0.0.0/24", "191.255.255.255", "192.0.1.0"),
    ("192.0.2.0/24", "192.0.1.255", "192.0.3.0"), ("192.88.99.0/24", "192.88.98.255", "192.88.100.0"),
    ("192.168.0.0/16", "192.167.255.255", "192.169.0.0"), ("198.18.0.0/15", "198.17.255.255", "198.20.0.0"),
    ("198.51.100.0/24", "198.51.99.255", "198.51.101.0"), ("203.0.113.0/24", "203.0.112.255", "203.0.114.0"),
    ("224.0.0.0/4", "223.255.255.255", None), ("240.0.0.0/4", None, None),
    ("::/96", None, "::1:0:0"), ("64:ff9b:1::/48", "64:ff9b:0:ffff::", "64:ff9b:2::"), ("100::/64", "ff:ffff::", "100:0:0:1::"),
    ("2001::/23", "2000:ffff::", "2001:200::"), ("2001:db8::/32", "2001:db7:ffff::", "2001:db9::"),
    ("2002::/16", "2001:ffff::", "2003::"), ("3fff::/20", "3ffe:ffff::", "3fff:1000::"), ("5f00::/16", "5eff:ffff::", "5f01::"),
    ("fc00::/7", "fbff:ffff::", "fe00::"), ("fe80::/10", "fe7f:ffff::", None), ("fec0::/10", None, None), ("ff00::/8", None, None),
]  # fmt: skip
"""Every blocked range, and the addresses just outside of it where those are public (SSRF-03, SSRF-04)."""


@pytest.mark.parametrize(("network", "below", "above"), EDGES)
def test_every_blocked_range_ends_where_it_should(network: str, below: str | None, above: str | None) -> None:
    blocked = ip_network(network)
    for inside in (blocked[0], blocked[-1], blocked[blocked.num_addresses // 2]):
        assert not STRICT.allow("hooks.example", str(inside))
    for outside in (below, above):
        if outside is not None:
            assert STRICT.allow("hooks.example", outside), outside


def test_no_blocked_range_is_without_a_test() -> None:
    assert {ip_network(network) for network, _, _ in EDGES} == set(BLOCKED)


@pytest.mark.parametrize("network", [network for network, _, _ in EDGES if "." in network])
def test_a_blocked_range_is_blocked_in_every_spelling(network: str) -> None:
    """SSRF-04, SSRF-06: decimal, hex and octal numbers, short forms, and inside of IPv6."""
    address = ip_network(network)[5]
    number = int(address)
    a, b, c, d = address.packed
    spellings = [
        str(address), str(number), hex(number), f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{number & 0xFFFF}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}", f"{address}.",
        f"[::ffff:{address}]", f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]", f"[64:ff9b::{address}]",
        f"[0:0:0:0:0:ffff:{address}]", f"[::{address}]", str(address).replace(".", "%2E"), str(address).replace(".", "\u3002"),
    ]  # fmt: skip
    for spelling in spellings:
        guard, asked = resolving()
        with pytest.raises(AddressBlocked):
            judge(guard, f"http://{spelling}:8080/in")
        assert asked == [], spelling


@pytest.mark.parametrize(
    "push",
    [{"allow": ["10.0.0.0/99"]}, {"allow": [" "]}, {"allow": ["*"]}, {"allow": ["http://a"]}, {"allow_loopback": "maybe"}],
)
def test_rules_that_cannot_be_read_refuse_the_start(tmp_path: Path, push: dict[str, object]) -> None:
    settings = quick_settings(tmp_path, **push)
    with pytest.raises(Misconfigured):
        rules_of(settings.push, settings.server, settings.access)
