"""Whether the access settings are safe and whole. Everything is refused at start, as a sentence with its consequence."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tidings.access.principals import Right
from tidings.config import AccessSettings, TokenSettings
from tidings.errors import Misconfigured

OPEN = "open"
MODES = (OPEN, "tokens", "jwt", "tokens+jwt")

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def is_loopback(host: str) -> bool:
    """Whether a host to bind is this machine alone. A name other than `localhost` may mean anything, so it is not."""
    plain = host.removeprefix("[").removesuffix("]")
    if plain.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(plain)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def check_bind(host: str, mode: str) -> None:
    """Refuse open access on an address that others can reach. Called for every address the hub will listen on."""
    if mode == OPEN and not is_loopback(host):
        raise Misconfigured(
            "with open access anybody who can reach this address could publish, read and administer",
            at="server.host",
            found=host,
            expected='127.0.0.1, or access.mode = "tokens" or "jwt"',
        )


def check_access(access: AccessSettings, host: str) -> None:
    """Refuse access settings that are unsafe for this address or lack a piece. Raises Misconfigured with all of it."""
    if access.mode not in MODES:
        raise Misconfigured("there is no such access mode", at="access.mode", found=access.mode, expected=", ".join(MODES))
    check_bind(host, access.mode)
    found = list(_faults(access))
    if found:
        raise Misconfigured("; ".join(found))


def uses_tokens(mode: str) -> bool:
    """Whether the table of tokens counts in this mode."""
    return "tokens" in mode.split("+")


def uses_jwt(mode: str) -> bool:
    """Whether signed tokens count in this mode."""
    return "jwt" in mode.split("+")


def _faults(access: AccessSettings) -> Iterator[str]:
    if uses_tokens(access.mode):
        yield from _token_faults(access.tokens)
    if uses_jwt(access.mode):
        if access.jwks or not access.issuers:
            yield from _jwks_faults("access.jwks", access.jwks)
        for n, one in enumerate(access.issuers):
            yield from _jwks_faults(f"access.issuers[{n}].jwks", one.jwks)
        if access.issuers and access.jwks and not access.issuer:
            yield "access.issuer is empty: beside access.issuers it could not be told whose keys a token is to be checked with"
        for n, word in enumerate(access.scopes):
            if word.right not in set(Right):
                yield f"access.scopes[{n}].right is {word.right!r}: expected {', '.join(sorted(Right))}"
        if not access.rights_claim:
            yield "access.rights_claim is empty: no signed token would give any right"


def _token_faults(tokens: tuple[TokenSettings, ...]) -> Iterator[str]:
    if not tokens:
        yield "access.tokens is empty: nobody could do anything"
    known = {right.value for right in Right}
    for n, token in enumerate(tokens):
        if not token.name:
            yield f"access.tokens[{n}] has no name"
        if not _SHA256.fullmatch(token.sha256):
            yield f"access.tokens[{n}].sha256 is no SHA-256: expected the 64 hex digits of `printf %s TOKEN | sha256sum`"
        for right in token.rights:
            if right not in known:
                yield f"access.tokens[{n}].rights has {right!r}: expected {', '.join(sorted(known))}"
    for digest, times in Counter(token.sha256.lower() for token in tokens).items():
        if times > 1:
            names = ", ".join(token.name for token in tokens if token.sha256.lower() == digest)
            yield f"access.tokens has the same token {times} times ({names}): it could not be told whose it is"


def _jwks_faults(place: str, jwks: str) -> Iterator[str]:
    if not jwks:
        yield f"{place} is empty: no signed token could be checked; expected an https address or a file"
    elif "://" in jwks:
        parts = urlsplit(jwks)
        safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        if not safe or not parts.hostname:
            yield f"{place} is {jwks!r}: keys are fetched over https only, since whoever changes them is let in"
    elif not Path(jwks).is_file():
        yield f"{place} is {jwks!r}: there is no such file"
