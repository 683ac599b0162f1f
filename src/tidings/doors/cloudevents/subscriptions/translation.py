"""Between the documents of this door and the core model.

The core subscription decides what is delivered; a paper of the same name keeps the criteria as they were written, to show them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tidings.access.secret_box import Box
from tidings.access.signing_keys import keys_for
from tidings.clock import Instant, rfc3339
from tidings.delivery.push.request.handshake import NoSupport
from tidings.doors import handshakes
from tidings.doors.cloudevents.subscriptions.configuration import BATCH, BINARY, USUAL_BATCH, Configuration
from tidings.doors.cloudevents.subscriptions.document import CRITERIA, HTTP, POST, SubscriptionDocument
from tidings.doors.cloudevents.subscriptions.sink_credential import credential_shown
from tidings.doors.covered_headers import headers_shown
from tidings.registry.credentials import SigningKey, SigningVersion
from tidings.registry.delivery_options import BatchForm, Ordering
from tidings.registry.model import ContentMode, Name, Paper, Push, Subscription

PRESET = "cloudevents"


def subscription_from(
    name: Name, document: SubscriptionDocument, owner: str, standing: Subscription | None, policy: NoSupport
) -> Subscription:
    """The core subscription that a document asks for."""
    held = standing.delivery if standing is not None and isinstance(standing.delivery, Push) else None
    configuration = document.configuration
    version = None if configuration.signing == "none" else SigningVersion(configuration.signing)
    push = Push(
        preset=PRESET,
        url=document.sink,
        mode=ContentMode.BINARY if configuration.contentmode == BINARY else ContentMode.STRUCTURED,
        headers=document.headers,
        credential=document.credential,
        signing=keys_for(version, held.signing if held else (), os.urandom),
        webhook=handshakes.kept(document.sink, policy, standing),
        ordering=Ordering(configuration.ordering),
        rate_per_minute=configuration.rate,
        **_batch(configuration),
    )
    return Subscription(name=name, source=configuration.source, delivery=push, filter=document.filter, owner=owner)


def _batch(configuration: Configuration) -> dict[str, Any]:
    if configuration.contentmode != BATCH:
        return {}
    return {"batch_size": configuration.batchsize or USUAL_BATCH, "batch_form": BatchForm.CLOUDEVENTS}


def paper_from(name: Name, document: SubscriptionDocument, owner: str) -> Paper:
    """What only this door knows of the subscription."""
    return Paper(name=name, text=document.criteria, owner=owner)


def shown(
    subscription: Subscription,
    paper: Paper | None,
    status: Mapping[str, Any],
    box: Box,
    now: Instant,
    secret: str | None = None,
) -> dict[str, Any]:
    """The subscription as its owner sees it. `secret`: its signing secret, where it was just made."""
    push = subscription.delivery
    assert isinstance(push, Push)
    criteria = paper.text if paper is not None else {}
    settings: dict[str, Any] = {"method": POST}
    if push.headers:
        settings["headers"] = headers_shown(subscription, box)
    if push.signing:
        settings["signing"] = signing_shown(push.signing, now, secret)
    found = {"id": subscription.name.name, "sink": push.url, "protocol": HTTP, "protocolsettings": settings}
    credential = credential_shown(push.credential)
    if credential is not None:
        found["sinkcredential"] = credential
    return found | {name: criteria[name] for name in CRITERIA if name in criteria} | dict(status)


def signing_shown(keys: tuple[SigningKey, ...], now: Instant, secret: str | None = None) -> dict[str, Any]:
    """How deliveries are signed; a secret is shown once, in the answer that made it (SW-06)."""
    ends = [key.until for key in keys if key.until is not None and key.until > now]
    found: dict[str, Any] = {"version": keys[0].version.value}
    if keys[0].public:
        found["publickey"] = keys[0].public
    if secret is not None:
        found["secret"] = secret
    return found | ({"oldkeyuntil": rfc3339(max(ends))} if ends else {})
