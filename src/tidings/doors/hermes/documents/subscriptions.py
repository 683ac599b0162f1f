"""Subscriptions as Hermes' documents describe them (HER-38 to HER-48), and what each comes to in the core. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tidings.doors.hermes.documents.endpoints import INVALID, HermesEndpoint, endpoint
from tidings.doors.hermes.documents.fields import Fields, fields_of, refuse_faults
from tidings.doors.hermes.documents.filters import read_filters
from tidings.doors.hermes.documents.oauth import MASK, oauth_of, oauth_policy
from tidings.doors.hermes.documents.owners import owner
from tidings.doors.hermes.documents.policies import BATCH, SERIAL, TRACKING, batch_policy, delivery_options, serial_policy
from tidings.doors.hermes.layout import HermesLayout
from tidings.doors.hermes.names import AVRO, JSON, subscription_name, topic_name, word_fault
from tidings.doors.hermes.refusals import invalid
from tidings.registry.credentials import Basic, Credential, OAuth
from tidings.registry.model import FilterText, Push, Subscription, Topic, TopicsSource
from tidings.registry.rules.callbacks import is_reserved

_ENDPOINT_MASKED = "is masked, and the password that stands is of another endpoint: give the full credentials"
_GENERATED = (
    "hermes-message-id",
    "hermes-retry-count",
    "hermes-topic-name",
    "hermes-subscription-name",
    "hermes-batch-id",
    "schema-version",
)
"""Headers that the hub sets itself."""


class SubscriptionRequest(NamedTuple):
    """A subscription's document as it is kept and shown, and what of it is not: the endpoint and secrets as they came."""

    document: dict[str, Any]
    endpoint: HermesEndpoint
    oauth: Mapping[str, Any] | None
    warnings: Sequence[str]


def subscription_request(raw: object) -> SubscriptionRequest:
    """A subscription's document, checked, with every default. Raises HermesRefused."""
    fields = fields_of(raw, "Subscription")
    topic, name = fields.text("topicName", needed=True), fields.text("name", needed=True)
    if name and (fault := word_fault(name)):
        fields.fault("name", fault)
    written = fields.text("endpoint", needed=True)
    found = endpoint(written) if written else None
    if written and found is None:
        fields.fault("endpoint", INVALID)
    delivery = fields.word("deliveryType", (SERIAL, BATCH), SERIAL)
    content = fields.word("contentType", (JSON, AVRO), JSON)
    if delivery == BATCH and content == AVRO:
        fields.fault("contentType", "AVRO content type is not supported in BATCH delivery mode")
    (filters, told), headers, oauth, tracking = read_filters(fields), _headers(fields), oauth_policy(fields), _tracking(fields)
    document = {
        "topicName": topic,
        "name": name,
        "endpoint": found.shown if found else "",
        "description": fields.text("description", needed=True),
        "subscriptionPolicy": _policy(fields, delivery),
        "trackingEnabled": tracking != "trackingOff",
        "trackingMode": tracking,
        "owner": owner(fields),
        "monitoringDetails": _monitoring(fields.below("monitoringDetails")),
        "contentType": content,
        "deliveryType": delivery,
        "filters": filters,
        "mode": fields.word("mode", ("ANYCAST", "BROADCAST"), "ANYCAST"),
        "headers": headers,
        "endpointAddressResolverMetadata": fields.below("endpointAddressResolverMetadata").raw,
        "http2Enabled": fields.flag("http2Enabled"),
        "profilingEnabled": fields.flag("profilingEnabled"),
        "subscriptionIdentityHeadersEnabled": fields.flag("subscriptionIdentityHeadersEnabled"),
        "autoDeleteWithTopicEnabled": fields.flag("autoDeleteWithTopicEnabled"),
    }
    if oauth is not None:
        document["oAuthPolicy"] = {**oauth, **({"password": MASK} if "password" in oauth else {})}
    refuse_faults(fields)
    assert found is not None
    warnings = [*told, *_overruled(headers)]
    if found.template and delivery == BATCH:
        raise invalid([("Subscription.endpoint", "a batch holds many messages, so its endpoint cannot have {variables}")])
    return SubscriptionRequest(document, found, oauth, warnings)


def _policy(fields: Fields, delivery: str) -> dict[str, Any]:
    """The policy of the kind of delivery, under the name that Hermes gives it in messages."""
    kind = "serialSubscriptionPolicy" if delivery == SERIAL else "batchSubscriptionPolicy"
    member = Fields(fields.below("subscriptionPolicy").raw, f"{fields.path}.{kind}", fields.faults)
    return serial_policy(member) if delivery == SERIAL else batch_policy(member)


def _tracking(fields: Fields) -> str:
    """Any word that is not known means off; the older boolean means all or off (HER-42)."""
    mode = fields.text("trackingMode")
    if fields.raw.get("trackingMode") is None and fields.flag("trackingEnabled"):
        return "trackingAll"
    return mode if mode in TRACKING else "trackingOff"


def _monitoring(fields: Fields) -> dict[str, str]:
    severity = fields.word("severity", ("CRITICAL", "IMPORTANT", "NON_IMPORTANT"), "NON_IMPORTANT")
    return {"severity": severity, "reaction": fields.text("reaction")}


def _headers(fields: Fields) -> list[dict[str, str]]:
    return [{"name": one.text("name", needed=True), "value": one.text("value")} for one in fields.objects("headers")]


def _overruled(headers: Sequence[Mapping[str, str]]) -> list[str]:
    """Headers whose value the hub replaces by its own (HER-75)."""
    return [f"the header {one['name']} is the hub's own; its value wins" for one in headers if not _is_theirs(one["name"])]


def _is_theirs(name: str) -> bool:
    return not is_reserved(name) and name.lower() not in _GENERATED


def sent_headers(document: Mapping[str, Any]) -> dict[str, str]:
    """The headers that go with every request; of one given twice, the last."""
    return {one["name"].lower(): one["value"] for one in document["headers"] if _is_theirs(one["name"])}


def core_subscription(request: SubscriptionRequest, standing: Subscription | None, topic: Topic) -> Subscription:
    """What a subscription's document comes to. Raises HermesRefused where a masked secret means none that stands."""
    document = request.document
    filters = document["filters"]
    delivery = Push(
        url=request.endpoint.url,
        headers=sent_headers(document),
        credential=_credential(request, standing),
        layout=_layout(request, topic).kept(),
        **delivery_options(document),
    )
    return Subscription(
        name=subscription_name(document["topicName"], document["name"]),
        source=TopicsSource((topic_name(document["topicName"]),)),
        delivery=delivery,
        filter=FilterText(dialect="hermes", text=filters) if filters else None,
        owner=document["owner"]["id"],
        description=document["description"],
    )


def _layout(request: SubscriptionRequest, topic: Topic) -> HermesLayout:
    document = request.document
    return HermesLayout(
        topic=document["topicName"],
        subscription=document["name"],
        identity=document["subscriptionIdentityHeadersEnabled"],
        template=request.endpoint.template,
        batch_bytes=document["subscriptionPolicy"].get("batchVolume", 0),
        wrapped=document["subscriptionPolicy"].get("batchFormat") != "plain",
        avro=document["contentType"] == AVRO,
        schemas=schemas_of(topic),
    )


def schemas_of(topic: Topic) -> tuple[tuple[int, str], ...]:
    """The Avro schemas of a topic, as layouts keep them."""
    return () if topic.avro is None else tuple((one.number, one.schema) for one in topic.avro.versions)


def with_schemas(subscription: Subscription, topic: Topic) -> Subscription:
    """The subscription with the schemas that its topic has now."""
    push = subscription.delivery
    if not isinstance(push, Push) or push.layout is None:
        return subscription
    layout = msgspec.structs.replace(push.layout.read(HermesLayout), schemas=schemas_of(topic))
    return msgspec.structs.replace(subscription, delivery=msgspec.structs.replace(push, layout=layout.kept()))


def _credential(request: SubscriptionRequest, standing: Subscription | None) -> Credential | None:
    """Basic wins over OAuth (HER-126)."""
    push = standing.delivery if standing is not None and isinstance(standing.delivery, Push) else None
    known = None if push is None else push.credential
    if request.endpoint.user:
        return request.endpoint.basic or _kept_basic(request.endpoint, push, known)
    if request.oauth is None:
        return None
    found = oauth_of(request.oauth, known if isinstance(known, OAuth) else None)
    if found is None:
        raise invalid([("Subscription.oAuthPolicy.password", "is masked, and there is none to keep: give it again")])
    return found


def _kept_basic(found: HermesEndpoint, push: Push | None, known: Credential | None) -> Basic:
    if push is None or not isinstance(known, Basic) or push.url != found.url or known.user != found.user:
        raise invalid([("Subscription.endpoint", _ENDPOINT_MASKED)])
    return known
