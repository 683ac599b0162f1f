"""Which addresses doors take for callbacks: scheme, user info, whether a name must resolve (SSRF-01, SSRF-11). Values only.

Whether an address may be reached is decided at every connect, for all doors alike; that is the guard's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from tidings.registry.credentials import Basic
from tidings.registry.rules.callbacks import url_fault


@dataclass(frozen=True, slots=True)
class SinkRules:
    """What one door takes. `secure`: https only, but for hosts that the operator allows. `user_info`: Basic in the address.

    `looked_up`: a name is resolved when the subscription is made, and a blocked address refused (SSRF-09, SSRF-10).
    """

    secure: bool = False
    user_info: bool = False
    looked_up: bool = False


STRICT = SinkRules(secure=True, looked_up=True)


def sink_fault(url: str, rules: SinkRules, allowed: Callable[[str], bool]) -> str | None:
    """What is wrong with an address by a door's rules; None when nothing is. `allowed`: whether the operator names this host."""
    if rules.user_info:
        url = taken_out(url)[0]
    fault = url_fault(url)
    if fault is not None:
        return fault
    parts = urlsplit(url)
    if rules.secure and parts.scheme != "https" and not allowed(parts.hostname or ""):
        return "a callback must be https"
    return None


def taken_out(url: str) -> tuple[str, Basic | None]:
    """The address without user and password, and those as a credential (HER-126). What cannot be read stays as it is."""
    try:
        parts = urlsplit(url)
        user, password = parts.username, parts.password
    except ValueError:
        return url, None
    if user is None:
        return url, None
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return plain, Basic(user=unquote(user), password=unquote(password or ""))
