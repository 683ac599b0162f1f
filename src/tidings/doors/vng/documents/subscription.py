"""A subscription: the document as it is kept and shown, and the core's subscription that it comes to (VNG-60 to VNG-72)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from tidings.access.secrets import COVER
from tidings.access.signing_keys import keys_for, shown_once
from tidings.config import VngSettings
from tidings.delivery.push.request.handshake import NoSupport
from tidings.doors.api_parts import ApiParts
from tidings.doors.covered_headers import headers_shown, uncovered
from tidings.doors.handshakes import kept
from tidings.doors.vng.documents.credential import credential_from, shown_credential
from tidings.doors.vng.documents.criteria import criteria_from, filter_of, old_forms, source_of
from tidings.doors.vng.documents.members import DocumentReader
from tidings.doors.vng.layout import VngLayout
from tidings.doors.vng.names import SUBSCRIPTIONS, subscription_name
from tidings.doors.vng.refusals import translated
from tidings.errors import InvalidDocument, Malformed
from tidings.registry.credentials import Placement, SigningKey, SigningVersion
from tidings.registry.model import Name, Paper, Push, Snapshot, Subscription
from tidings.registry.rules.callback_addresses import STRICT, sink_fault
from tidings.registry.rules.documents import check_shape

NO_SINK = "https://sink.invalid/"
"""Stands for a sink that is missing, so that all other faults are found as well."""

PRESET = "vng"
PERMANENT = frozenset((413, 415))
"""What the preset gives up at."""

WITHDRAWN = "this is the withdrawn form, read as attributes that are called attribute and value"

MEMBERS_HERE = {
    "delivery.url": "sink",
    "delivery.headers": "protocolSettings.headers",
    "delivery.credential.token_type": "sinkCredential.accessTokenType",
    "delivery.credential.token": "sinkCredential.accessToken",
    "delivery.credential.refresh_at": "sinkCredential.refreshTokenEndpoint",
    "delivery.credential.refresh": "sinkCredential.refreshToken",
    "delivery.credential": "sinkCredential",
    "delivery.rate_per_minute": "config.rate",
    "delivery": "config",
    "filter.text": "filters",
    "filter": "filters",
}
"""The core's members as they are called here."""


class WantedSubscription(NamedTuple):
    """What a body comes to: the document, and the subscription in the core."""

    paper: Paper
    subscription: Subscription

    def asking_again(self) -> WantedSubscription:
        """The same, with whatever its sink agreed to forgotten."""
        push = self.subscription.delivery
        assert isinstance(push, Push)
        return self._replace(subscription=replace(self.subscription, delivery=replace(push, webhook=None)))


class SubscriptionContext(NamedTuple):
    """Where a body is read: the hub's parts, who asks, what stands."""

    parts: ApiParts
    owner: str
    standing: WantedSubscription | None

    @property
    def held(self) -> Subscription | None:
        return None if self.standing is None else self.standing.subscription


def standing_subscription(snapshot: Snapshot, uuid: str) -> WantedSubscription | None:
    """The subscription of this id that is in force."""
    paper = snapshot.papers.get(Name(SUBSCRIPTIONS, uuid))
    subscription = snapshot.subscriptions.get(subscription_name(uuid))
    return None if paper is None or subscription is None else WantedSubscription(paper, subscription)


def subscription_from(raw: Mapping[str, Any], uuid: str, context: SubscriptionContext) -> WantedSubscription:
    """What a body asks for. Raises InvalidDocument with everything that is wrong; asks nobody else."""
    settings = context.parts.settings.vng
    reader = DocumentReader(raw, [])
    sink = _sink(reader, context)
    if reader.text("protocol", required=True) not in ("", "HTTP"):
        reader.fault("protocol", "invalid", "expected HTTP")
    criteria = criteria_from(reader, settings)
    source = source_of(criteria, context.parts.snapshot, reader)
    config = reader.map("config")
    reference = reader.text("subscriberReference") if raw.get("subscriberReference") != "" else ""
    same_sink = context.held if context.held is not None and _sink_of(context.held) == sink else None
    push = _push(reader, sink, config, context, same_sink)
    layout = VngLayout(subscription=uuid, reference=reference, cloudevents_names=config.get("cloudEventsNames") == "true")
    subscription = Subscription(
        name=subscription_name(uuid),
        source=source,
        delivery=replace(push, layout=layout.kept()),
        filter=filter_of(criteria),
        owner=context.owner,
        description=f"VNG subscription for {reference}"[:4096] if reference else "",
    )
    text = {**criteria, "config": config, "subscriberReference": reference, "protocolSettings": raw.get("protocolSettings")}
    text["protocolSettings"] = _settings_shown(text["protocolSettings"])
    _check_shape(subscription, reader)
    reader.refuse()
    paper = Paper(name=Name(SUBSCRIPTIONS, uuid), text={k: v for k, v in text.items() if v}, owner=context.owner)
    return WantedSubscription(paper, subscription)


def _sink(reader: DocumentReader, context: SubscriptionContext) -> str:
    sink = reader.text("sink", required=True)
    if sink:
        fault = sink_fault(sink, STRICT, context.parts.reach().rules.names)
        if fault is not None:
            reader.fault("sink", "invalid", fault)
            return NO_SINK
    return sink or NO_SINK


def _sink_of(subscription: Subscription) -> str:
    return subscription.delivery.url if isinstance(subscription.delivery, Push) else ""


def _settings_shown(settings: Any) -> dict[str, Any] | None:
    """What is kept of protocolSettings: which of them were given. The headers are the push's, where they are sealed."""
    if not isinstance(settings, dict):
        return None
    return {name: True for name in ("headers", "method") if settings.get(name) is not None} or {"empty": True}


def _push(
    reader: DocumentReader, sink: str, config: Mapping[str, str], context: SubscriptionContext, same: Subscription | None
) -> Push:
    settings = context.parts.settings.vng
    protocol = DocumentReader(reader.object("protocolSettings"), reader.faults, "protocolSettings")
    if protocol.members.get("method") not in (None, "POST"):
        protocol.fault("method", "invalid", "expected POST")
    headers = protocol.map("headers")
    try:
        headers = uncovered(headers, sink, context.held, "headers")
    except Malformed as error:
        protocol.fault(error.at, "invalid", f"{error.what}; expected {error.expected}")
        headers = {name: value for name, value in headers.items() if value != COVER}
    read = DocumentReader(config, reader.faults, "config")
    placement = _choice(read, "tokenPlacement", ("header", "query"))
    _choice(read, "cloudEventsNames", ("true", "false"))
    signing = _choice(read, "signing", ("none", "v1", "v1a"))
    raw = reader.object("sinkCredential")
    held = same.delivery if same is not None and isinstance(same.delivery, Push) else None
    return Push(
        preset=PRESET,
        url=sink,
        headers=headers,
        credential=credential_from(raw, held, Placement(placement), reader.faults) if raw else None,
        signing=_keys(signing, context.held),
        webhook=kept(sink, NoSupport(settings.handshake), context.held),
        rate_per_minute=_rate(read),
        answers=_answers(settings),
        retry_horizon=settings.retry_horizon,
    )


def _choice(config: DocumentReader, name: str, words: tuple[str, ...]) -> str:
    """One of these words; the first where nothing is given."""
    found = config.members.get(name, words[0])
    if found not in words:
        config.fault(name, "invalid", f"expected {' or '.join(words)}")
        return words[0]
    return str(found)


def _rate(config: DocumentReader) -> int | None:
    found = config.members.get("rate")
    if found is None:
        return None
    if not (found.isascii() and found.isdigit() and 0 < len(found) < 7 and int(found) > 0):
        config.fault("rate", "invalid", "expected a whole number of requests a minute, from 1 to 999999, as a text")
        return None
    return int(found)


def _keys(wanted: str, standing: Subscription | None) -> tuple[SigningKey, ...]:
    held = standing.delivery.signing if standing is not None and isinstance(standing.delivery, Push) else ()
    return keys_for(None if wanted == "none" else SigningVersion(wanted), held, os.urandom)


def _answers(settings: VngSettings) -> dict[str, str]:
    """What differs from the preset's own table."""
    wanted = frozenset(settings.permanent_statuses)
    more = {str(status): "give-up" for status in sorted(wanted - PERMANENT)}
    return {**more, **{str(status): "retry" for status in sorted(PERMANENT - wanted)}}


def _check_shape(subscription: Subscription, reader: DocumentReader) -> None:
    """The core's own rules, told in the words of this door; what was found here already is not told twice."""
    try:
        check_shape([subscription])
    except InvalidDocument as error:
        known = {one.attribute for one in reader.faults}
        if any(name.startswith("filters") for name in known):
            known.add("filters")
        reader.faults.extend(one for one in translated(error.faults, MEMBERS_HERE) if one.attribute not in known)


def shown_subscription(
    wanted: WantedSubscription, address: str, context: SubscriptionContext, status: tuple[str, str]
) -> dict[str, Any]:
    """The subscription as it is answered; `status` and its reason are delivery's."""
    paper, subscription = wanted
    push, text = subscription.delivery, paper.text
    assert isinstance(push, Push)
    shown: dict[str, Any] = {
        "url": f"{address}/{paper.name.name}",
        "id": paper.name.name,
        "sink": push.url,
        "protocol": "HTTP",
        **{
            name: text[name]
            for name in ("source", "domain", "types", "filters", "config", "subscriberReference")
            if name in text
        },
    }
    if "protocolSettings" in text:
        given = text["protocolSettings"]
        headers = {"headers": headers_shown(subscription, context.parts.box)} if "headers" in given else {}
        shown["protocolSettings"] = headers | ({"method": "POST"} if "method" in given else {})
    if (credential := shown_credential(push.credential)) is not None:
        shown["sinkCredential"] = credential
    shown["status"] = status[0]
    if status[1]:
        shown["statusreason"] = status[1]
    if lint := [f"{place}: {WITHDRAWN}" for place in old_forms(text.get("filters"))]:
        shown["lint"] = lint
    return shown


def new_secret(wanted: WantedSubscription) -> str | None:
    """The signing secret that was just made, before it is sealed; it is shown once."""
    push = wanted.subscription.delivery
    return shown_once(push.signing) if isinstance(push, Push) else None
