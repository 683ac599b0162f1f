"""The key of the hub's own tokens."""

from __future__ import annotations

from pathlib import Path

import jwt

from tidings.access.former_keys import FILE, FormerKeys
from tidings.access.gateway import GatewayKey
from tidings.access.rsa_keys import _is_prime, _stream, rsa_key
from tidings.access.secrets import Secret
from tidings.clock import ManualClock


def test_every_process_makes_the_same_key_and_another_secret_another_one() -> None:
    one, same, other = GatewayKey(Secret(b"a" * 32)), GatewayKey(Secret(b"a" * 32)), GatewayKey(Secret(b"b" * 32))
    assert one.jwks == same.jwks != other.jwks
    (key,) = one.jwks["keys"]
    assert (key["kty"], key["alg"], key["use"], "d" in key) == ("RSA", "RS256", "sig", False)
    token = same.signed({"a": 1})
    assert jwt.get_unverified_header(token)["kid"] == key["kid"]
    assert jwt.decode(token, jwt.PyJWK(key), algorithms=["RS256"]) == {"a": 1}


def test_the_key_is_a_sound_rsa_key() -> None:
    numbers = rsa_key(b"seed").private_numbers()
    assert numbers.p != numbers.q and (numbers.p * numbers.q).bit_length() == 2048
    assert rsa_key(b"seed").key_size == 2048


def test_what_is_no_prime_is_found_out() -> None:
    known = [65539, 1000003]
    assert all(_is_prime(number, _stream(b"x")) for number in known)
    # Numbers that fool Fermat's test, and products of two large primes.
    assert not any(_is_prime(number, _stream(b"x")) for number in (6601 * 8911, 1000003 * 1000033, 3215031751))


def test_hor_165_a_former_key_is_listed_for_a_while(tmp_path: Path) -> None:
    clock = ManualClock()
    former = FormerKeys(tmp_path, 600, clock)
    old, new = GatewayKey(Secret(b"a" * 32), former), GatewayKey(Secret(b"b" * 32), former)
    token = old.signed({"a": 1})
    kid = jwt.get_unverified_header(token)["kid"]
    clock.advance(1_000_000)
    listed = new.jwks["keys"]
    assert [key["kid"] == kid for key in listed] == [False, True]
    assert jwt.decode(token, jwt.PyJWK(listed[1]), algorithms=["RS256"]) == {"a": 1}
    clock.advance(599)
    assert new.jwks["keys"] == listed
    clock.advance(2)
    assert new.jwks["keys"] == listed[:1]
    assert b'"d":' not in (tmp_path / FILE).read_bytes()
    # Back to the former one: it is the one in use again.
    assert [key["kid"] for key in old.jwks["keys"]] == [kid, listed[0]["kid"]]
    (tmp_path / FILE).write_text("damaged")
    assert new.jwks["keys"] == listed[:1]
