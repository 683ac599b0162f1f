"""Endpoints of subscriptions: their form, and the user and password that may stand in them (HER-39, HER-126, HER-127). Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from tidings.doors.hermes.endpoint_template import VARIABLE
from tidings.registry.credentials import Basic
from tidings.registry.rules.callback_addresses import taken_out
from tidings.registry.rules.callbacks import url_fault

INVALID = "Endpoint address has invalid format"
MASK = "*****"


class HermesEndpoint(NamedTuple):
    """An endpoint without its password. `shown` is how it is told to others, `secret` the password that came, None: masked.

    `url` has something in the place of variables; `template` is the address with them, empty where there are none.
    """

    url: str
    template: str
    shown: str
    user: str
    secret: str | None

    @property
    def basic(self) -> Basic | None:
        """The credential, where one came."""
        return Basic(user=self.user, password=self.secret) if self.user and self.secret is not None else None


def endpoint(text: str) -> HermesEndpoint | None:
    """The endpoint that a document names; None when its form is wrong."""
    url, basic = taken_out(text)
    sample = VARIABLE.sub("x", url)
    template = url if sample != url else ""
    if url_fault(sample) is not None or "_" in (urlsplit(sample).hostname or ""):
        return None
    if basic is None:
        return HermesEndpoint(sample, template, url, "", None)
    if not basic.user or ":" in basic.user:
        return None
    parts = urlsplit(url)
    shown = urlunsplit(parts._replace(netloc=f"{quote(basic.user)}:{MASK}@{parts.netloc}"))
    return HermesEndpoint(sample, template, shown, basic.user, None if basic.password == MASK else basic.password)
