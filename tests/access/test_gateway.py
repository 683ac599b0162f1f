"""The key of the hub's own tokens."""

from __future__ import annotations

import jwt

from tidings.access.gateway import GatewayKey
from tidings.access.rsa_keys import _is_prime, _stream, rsa_key
from tidings.access.secrets import Secret


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
