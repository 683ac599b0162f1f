"""The core model: what every door translates to and from. Plain values; `rules.py` decides, `store.py` keeps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from tidings.clock import Instant
from tidings.log.position import LaneNumber, Marks, Position, TopicNumber
from tidings.registry.avro import AvroPayload
from tidings.registry.credentials import Credential, SigningKey, Webhook
from tidings.registry.delivery_options import DeliveryOptions
from tidings.registry.feeds import TopicFeed
from tidings.registry.formats import Layout

DEFAULT_NAMESPACE = "default"
HUB_NAMESPACE = "tidings"
"""What the hub tells of itself: made by it, and never pruned."""


class Name(msgspec.Struct, frozen=True, order=True, gc=False):
    """A topic's or subscription's full name. Written `name` in the default namespace, else `namespace:name`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return self.name if self.namespace == DEFAULT_NAMESPACE else f"{self.namespace}:{self.name}"


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """The unit of publishing, ordering and retention. None means: the hub's default.

    `schema` is a JSON Schema, `avro` the schemas of payloads in Avro; a topic has one or the other, or none.
    """

    name: Name
    number: TopicNumber = TopicNumber(-1)
    description: str = ""
    retention: float | None = None
    max_event_bytes: int | None = None
    duplicates: str | None = None
    key_attribute: str = "subject"
    schema: Mapping[str, Any] | None = None
    avro: AvroPayload | None = None
    labels: Mapping[str, str] = {}
    feed: TopicFeed = TopicFeed()


class ApprovalMode(StrEnum):
    """How a subscription to an exposed topic becomes active."""

    AUTO = "auto"
    MANUAL = "manual"
    FOUR_EYES = "four-eyes"


class FilterText(msgspec.Struct, frozen=True, kw_only=True):
    """A filter as its owner wrote it; `tidings.filters.parse` gives it meaning. `text` is JSON where the dialect is JSON."""

    dialect: str
    text: Any


class ProjectionText(msgspec.Struct, frozen=True, kw_only=True):
    """A projection as its owner wrote it; `tidings.filters.projection.projection` gives it meaning."""

    mode: str
    paths: tuple[str, ...]
    syntax: str = "dotted"


DEFAULT_SCOPE = "default"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a topic's events that its publisher offers: which of them, and which parts of their payloads."""

    filter: FilterText | None = None
    projection: ProjectionText | None = None


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """Who may publish to a topic, who may subscribe, and how. A topic without one is open to everyone with the right.

    `scopes` are what subscriptions choose from; one called `default` holds for those that name none.
    `owner` is who offers the topic, `trusted` lists whose subscriptions need no approval, whatever its mode.
    """

    topic: Name
    publishers: tuple[str, ...] = ("*",)
    subscribers: tuple[str, ...] = ("*",)
    approval: ApprovalMode = ApprovalMode.AUTO
    scopes: Mapping[str, Scope] = {}
    owner: str = ""
    trusted: tuple[str, ...] = ()


class ApprovalState(StrEnum):
    """Where an approval stands; only GRANTED lets events through."""

    PENDING = "pending"
    GRANTED = "granted"
    REJECTED = "rejected"


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on one subscription to one topic. `by`: who has granted it so far, where more than one must."""

    subscription: Name
    topic: Name
    state: ApprovalState
    reason: str = ""
    by: tuple[str, ...] = ()


class TopicsSource(msgspec.Struct, frozen=True, tag="topics", tag_field="kind"):
    """Events of these topics."""

    topics: tuple[Name, ...]


class NamespaceSource(msgspec.Struct, frozen=True, tag="namespace", tag_field="kind"):
    """Events of every topic of a namespace, also of topics created later."""

    namespace: str


Source: TypeAlias = TopicsSource | NamespaceSource


class ContentMode(StrEnum):
    """How an event is laid out in the request to a callback."""

    BINARY = "binary"
    STRUCTURED = "structured"


class Push(DeliveryOptions, frozen=True, kw_only=True, tag="push", tag_field="kind"):
    """Pushed to a callback, by the delivery policy that it wishes for. `layout` None: as CloudEvents have it."""

    url: str
    mode: ContentMode = ContentMode.STRUCTURED
    headers: Mapping[str, str] = {}
    credential: Credential | None = None
    signing: tuple[SigningKey, ...] = ()
    webhook: Webhook | None = None
    layout: Layout | None = None


class Stream(msgspec.Struct, frozen=True, kw_only=True, tag="sse", tag_field="kind"):
    """Streamed to whoever holds the subscription's stream open, one event after the other; the rest waits in the lane."""

    layout: Layout | None = None


class Pull(msgspec.Struct, frozen=True, kw_only=True, tag="pull", tag_field="kind"):
    """Nothing is pushed: the lane is filled and waits to be fetched or streamed."""


Delivery: TypeAlias = Push | Stream | Pull


class LaneFill(msgspec.Struct, frozen=True, kw_only=True):
    """The lane is filled from the log: whatever the subscription may see after these positions goes through its filter of now.

    `number` tells one filling from the next; the rules give it. 0: a new one is wanted.
    """

    after: tuple[Position, ...] = ()
    number: int = 0

    @classmethod
    def beyond(cls, marks: Marks) -> LaneFill:
        """A new filling with what comes after these marks; without any, with everything there is."""
        return cls(after=tuple(Position(partition, offset) for partition, offset in sorted(marks.items())))

    @property
    def marks(self) -> Marks:
        return dict(self.after)


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """Who gets which events, how. `lane` is its number for ever; a subscription of the same name made later has another.

    `scopes` are those it uses of each of its topics' exposures; the filter sees what they leave, the projection comes last.
    `blocked` says why it stands and gets nothing; empty: it is not.
    `retention` is how long, in seconds from publishing on, an event can be delivered to it or fetched by it; what was in force
    when the event was published decides. None: as long as its topic keeps it.
    `fill` is the newest filling of its lane; a put without one keeps that of before.
    """

    name: Name
    source: Source
    delivery: Delivery
    filter: FilterText | None = None
    projection: ProjectionText | None = None
    scopes: tuple[str, ...] = ()
    owner: str = ""
    description: str = ""
    lane: LaneNumber = LaneNumber(-1)
    created: Instant = Instant(0)
    labels: Mapping[str, str] = {}
    blocked: str = ""
    retention: float | None = None
    fill: LaneFill | None = None


class FormerRetention(msgspec.Struct, frozen=True, gc=False):
    """The retention that a subscription had for the events at or below these marks."""

    upto: Marks
    seconds: float | None


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """A door's document as its owner wrote it: shown again as it was, and read again when others change what it comes to.

    The namespace is the door's, one for each kind of document. `owner` is whose it is, in the door's words.
    """

    name: Name
    text: Mapping[str, Any]
    owner: str = ""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Where tokens for endpoints are asked for (HER-128). Times are seconds; `socket_timeout` 0: none of its own."""

    name: Name
    token_endpoint: str
    client_id: str
    client_secret: str
    first_delay: float = 0.1
    longest_delay: float = 30.0
    request_timeout: float = 1.0
    socket_timeout: float = 0.0
    parameters_in_query: bool = False


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one subscription as routing needs it: in force for positions p with since < p ≤ until, per partition.

    Made by the rules from subscription, approval and topics together: a pending approval gives no route at all, a topic that
    joins a namespace gives a new version. `until` None: still in force. A lane may have several routes at once, each for
    topics of its own.

    In this order: an event must match one of `select` (none: all do), `scope` is applied to its payload, `filter` must match
    what that leaves, `projection` is applied last.
    """

    lane: LaneNumber
    topics: frozenset[TopicNumber]
    filter: FilterText | None
    since: Marks
    until: Marks | None = None
    select: tuple[FilterText, ...] = ()
    scope: ProjectionText | None = None
    projection: ProjectionText | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in force now, as of one revision: what ingest admits by and delivery delivers by.

    `former` holds, for lanes where it was ever changed, the retentions of events that were published before: oldest first.
    """

    revision: int
    topics: Mapping[Name, Topic] = {}
    exposures: Mapping[Name, Exposure] = {}
    subscriptions: Mapping[Name, Subscription] = {}
    approvals: Mapping[tuple[Name, Name], Approval] = {}
    providers: Mapping[Name, Provider] = {}
    papers: Mapping[Name, Paper] = {}
    former: Mapping[LaneNumber, tuple[FormerRetention, ...]] = {}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the audit log: who changed what, when, and from which position it holds."""

    revision: int
    at: Instant
    by: str
    action: str
    kind: str
    name: str
    marks: Marks
    document: Any = None
