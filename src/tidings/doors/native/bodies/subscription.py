"""The wire shape of a subscription, and its translation to and from the core model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from tidings.doors.covered_headers import uncovered
from tidings.doors.handshakes import kept
from tidings.doors.native.bodies.credential import (
    CredentialBody,
    Signing,
    SigningView,
    credential_from,
    credential_shown,
    signing_from,
)
from tidings.doors.native.bodies.policy import PolicyBody, shown_wishes, wishes_from
from tidings.doors.native.bodies.projection import ProjectBody, projection_from, shown_projection
from tidings.doors.native.bodies.wire import Duration, Labels, Wire, time_of
from tidings.doors.native.delivery.webhooks import Handshake, policy_in
from tidings.errors import Malformed
from tidings.registry.formats import Layout
from tidings.registry.model import (
    ContentMode,
    Delivery,
    FilterText,
    Name,
    NamespaceSource,
    Pull,
    Push,
    Source,
    Stream,
    Subscription,
    TopicsSource,
)
from tidings.registry.rules import parse_name
from tidings.registry.rules.callback_addresses import taken_out

CLOUDEVENTS = "cloudevents"
"""The format of deliveries that have no other."""

WHERE = "where"
"""The dialect of a plain `where` text."""


class FilterBody(Wire):
    """A filter in one of the dialects."""

    dialect: str
    filter: Any


class DeliveryBody(PolicyBody):
    """How events reach the subscriber. What is left out is as the preset has it, or the hub."""

    kind: Literal["push", "sse", "pull"] = Field(
        default="push", description="Pushed to a callback, streamed to whoever opens the stream, or kept to be fetched."
    )
    url: str | None = Field(default=None, description="The callback; for push only.")
    mode: Literal["structured", "binary"] = "structured"
    headers: dict[str, str] = Field(default_factory=dict, description="Sent with every request. Secret ones are shown as ***.")
    credential: CredentialBody | None = Field(
        default=None, description="Who the hub is to the callback; secrets are shown as ***."
    )
    signing: Signing = Field(default="none", description="Signatures of Standard Webhooks; the hub makes the key.")


class SubscriptionBody(Wire):
    """A subscription: which events (topic, topics or namespace; scopes; where or filter), which parts (project), and how they
    arrive (to or delivery).
    """

    name: str | None = None
    topic: str | None = None
    topics: list[str] | None = None
    namespace: str | None = Field(default=None, description="Every topic of this namespace, also those created later.")
    where: str | None = Field(default=None, description='A condition such as `@type = "order.created" and total > 5`.')
    filter: FilterBody | None = None
    project: ProjectBody | None = Field(default=None, description="Which parts of the payload to get.")
    scopes: list[str] | None = Field(default=None, description="Which scopes of the topics' exposures to use.")
    to: str | None = Field(default=None, description="The callback; short for delivery.url.")
    delivery: DeliveryBody | None = None
    owner: str | None = Field(default=None, description="Only administrators may name somebody else.")
    description: str = ""
    labels: Labels = Field(default_factory=dict)
    retention: Duration | None = Field(
        default=None,
        description="How long after its publishing an event can be delivered or fetched; as long as the topic keeps it "
        "unless set. A change holds for events published from then on.",
    )
    start: str | None = Field(
        default=None,
        description="Where it begins when it is made: now (unless set), first, or a time such as 2030-01-31T12:00:00Z. Events from "
        "there on that the log still has are delivered by today's filter. Of no meaning for a subscription that is there.",
    )
    signing: SigningView | None = Field(default=None, description="Only shown; what is put back here changes nothing.")
    handshake: Handshake = Field(
        default="none", description="Ask the callback for its consent first, and what to do when it knows no handshake."
    )
    consent: str | None = Field(default=None, description="Only shown: given, pending or unverified, where it was asked for.")
    format: str | None = Field(default=None, description="Only shown: how events are laid out; cloudevents, or a door's own.")
    door: str | None = Field(default=None, description="Only shown: the door where alone it can be changed; null: here.")
    warnings: list[str] | None = Field(default=None, description="Only shown: what may not be meant as it is written.")


class SubscriptionView(Wire):
    """A subscription as it is."""

    name: str
    topics: list[str] | None = None
    namespace: str | None = None
    where: str | None = None
    filter: FilterBody | None = None
    project: ProjectBody | None = None
    scopes: list[str] | None = None
    delivery: DeliveryBody
    owner: str
    description: str = ""
    labels: Labels
    retention: float | None = None
    created: str
    signing: SigningView | None = None
    handshake: str = "none"
    consent: str | None = None
    format: str | None = None
    door: str | None = None
    approvals: dict[str, str] | None = Field(default=None, description="State of the approval per topic, where one is needed.")


class SubscriptionAnswer(SubscriptionView):
    """A subscription as it was just put."""

    warnings: list[str] = Field(
        default=[],
        description="What keeps deliveries from arriving, or may not be meant as it is written. Left out when there is nothing.",
    )

    @model_serializer(mode="wrap")
    def _without_nothing(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        members: dict[str, Any] = serialize(self)
        if not self.warnings:
            del members["warnings"]
        return members


def subscription_from(name: Name, body: SubscriptionBody, owner: str, standing: Subscription | None) -> Subscription:
    """The subscription that a body describes. A covered secret keeps the value it has."""
    return Subscription(
        name=name,
        source=_source(body),
        delivery=_delivery(body, standing),
        filter=filter_from(body.where, body.filter),
        projection=projection_from(body.project),
        scopes=tuple(body.scopes or ()),
        owner=owner,
        description=body.description,
        labels=body.labels,
        retention=body.retention,
    )


def _only(choices: Mapping[str, object], needed: bool) -> str | None:
    given = [name for name, value in choices.items() if value is not None]
    if len(given) > 1:
        raise Malformed(f"{' and '.join(given)} exclude each other", expected=f"one of {', '.join(choices)}")
    if needed and not given:
        raise Malformed("something is missing", expected=f"one of {', '.join(choices)}")
    return given[0] if given else None


def _source(body: SubscriptionBody) -> Source:
    _only({"topic": body.topic, "topics": body.topics, "namespace": body.namespace}, needed=True)
    if body.namespace is not None:
        return NamespaceSource(body.namespace)
    return TopicsSource(tuple(parse_name(text) for text in (body.topics if body.topics is not None else [body.topic or ""])))


def filter_from(where: str | None, filter: FilterBody | None) -> FilterText | None:
    """The filter that one of the two describes."""
    _only({"where": where, "filter": filter}, needed=False)
    if where is not None:
        return FilterText(dialect=WHERE, text=where)
    return None if filter is None else FilterText(dialect=filter.dialect, text=filter.filter)


def _delivery(body: SubscriptionBody, standing: Subscription | None) -> Delivery:
    _only({"to": body.to, "delivery": body.delivery}, needed=True)
    wanted = body.delivery or DeliveryBody(url=body.to)
    if wanted.kind != "push":
        if wanted.url is not None:
            raise Malformed(f"nothing is pushed with kind {wanted.kind}", at="delivery.url")
        return Pull() if wanted.kind == "pull" else Stream(layout=_layout(standing))
    if wanted.url is None:
        raise Malformed("a push needs the address of its callback", at="delivery.url")
    url, basic = taken_out(wanted.url)
    if basic is not None and wanted.credential is not None:
        raise Malformed("the address and the credential both say who asks", at="delivery.url", expected="one of them")
    return Push(
        url=url,
        credential=basic or credential_from(wanted.credential, url, standing),
        signing=signing_from(wanted.signing, standing),
        webhook=kept(url, policy_in(body.handshake), standing),
        mode=ContentMode(wanted.mode),
        headers=uncovered(wanted.headers, url, standing, "delivery.headers"),
        layout=_layout(standing),
        **wishes_from(wanted),
    )


def _layout(standing: Subscription | None) -> Layout | None:
    """A layout is its door's: what a subscription has, it keeps."""
    return None if standing is None or isinstance(standing.delivery, Pull) else standing.delivery.layout


def view_of(subscription: Subscription, approvals: Mapping[str, str], headers: dict[str, str]) -> SubscriptionView:
    """The subscription as it is shown, with the state of its approvals per topic, and its headers as they may be seen."""
    match subscription.source:
        case TopicsSource(topics):
            source: dict[str, Any] = {"topics": [str(topic) for topic in topics]}
        case NamespaceSource(namespace):
            source = {"namespace": namespace}
    return SubscriptionView(
        name=str(subscription.name),
        **source,
        **shown_filter(subscription.filter),
        project=shown_projection(subscription.projection),
        scopes=list(subscription.scopes) or None,
        delivery=_shown_delivery(subscription.delivery, headers),
        owner=subscription.owner,
        description=subscription.description,
        labels=dict(subscription.labels),
        retention=subscription.retention,
        created=time_of(subscription.created) or "",
        **_shown_webhook(subscription.delivery),
        format=_shown_format(subscription.delivery),
        approvals=dict(approvals) or None,
    )


def _shown_format(delivery: Delivery) -> str | None:
    """The format of what is sent by itself; None where events are only fetched."""
    if isinstance(delivery, Pull):
        return None
    return CLOUDEVENTS if delivery.layout is None else delivery.layout.format


def _shown_webhook(delivery: Delivery) -> dict[str, Any]:
    webhook = delivery.webhook if isinstance(delivery, Push) else None
    return {} if webhook is None else {"handshake": webhook.policy, "consent": webhook.consent.value}


def shown_filter(filter: FilterText | None) -> dict[str, Any]:
    """The filter as it is shown: `where` or `filter`."""
    if filter is None:
        return {}
    return (
        {"where": filter.text}
        if filter.dialect == WHERE
        else {"filter": FilterBody(dialect=filter.dialect, filter=filter.text)}
    )


def _shown_delivery(delivery: Delivery, headers: dict[str, str]) -> DeliveryBody:
    if not isinstance(delivery, Push):
        return DeliveryBody(kind="pull" if isinstance(delivery, Pull) else "sse")
    return DeliveryBody(
        url=delivery.url,
        mode=delivery.mode.value,
        headers=headers,
        credential=credential_shown(delivery.credential),
        signing=delivery.signing[0].version.value if delivery.signing else "none",
        **shown_wishes(delivery),
    )
