"""An RSA key made from a secret: the same secret gives the same key in every process, so that no file has to be kept.

Candidates for the primes come from a stream of hashes under the secret; each is tried as everybody tries primes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from math import isqrt

from cryptography.hazmat.primitives.asymmetric import rsa

BITS = 2048
EXPONENT = 65537
_ROUNDS = 32
_SMALL = [number for number in range(3, 2000) if all(number % divisor for divisor in range(2, isqrt(number) + 1))]


def rsa_key(seed: bytes) -> rsa.RSAPrivateKey:
    """The key of a seed of at least 32 secret bytes. Takes about a third of a second."""
    words = _stream(seed)
    p, q = _prime(words), _prime(words)
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(EXPONENT, p * q)
    return rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), rsa.rsa_crt_iqmp(p, q), public).private_key()


def _stream(seed: bytes) -> Iterator[int]:
    """Numbers of half the bits of the key."""
    counter = 0
    while True:
        blocks = (hashlib.sha512(seed + (counter + n).to_bytes(8, "big")).digest() for n in range(BITS // 1024))
        yield int.from_bytes(b"".join(blocks), "big")
        counter += BITS // 1024


def _prime(words: Iterator[int]) -> int:
    """The first prime at or after the next number; its two highest bits are set, so that the product has all its bits."""
    candidate = next(words) | (3 << (BITS // 2 - 2)) | 1
    while not _is_prime(candidate, words):
        candidate += 2
    return candidate


def _is_prime(number: int, words: Iterator[int]) -> bool:
    if any(number % small == 0 for small in _SMALL) or (number - 1) % EXPONENT == 0 or pow(2, number - 1, number) != 1:
        return False
    return all(_passes(number, next(words) % (number - 3) + 2) for _ in range(_ROUNDS))


def _passes(number: int, base: int) -> bool:
    """One round of Miller and Rabin."""
    odd, halvings = number - 1, 0
    while odd % 2 == 0:
        odd, halvings = odd // 2, halvings + 1
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(halvings - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
