"""What a document may say by itself. All that is wrong is told at once, each with the path of the field and the reason.

What a document refers to (does the topic exist?) is checked by `changes`, against what is in force when the change is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, assert_never

import msgspec

from tidings import config
from tidings.errors import Malformed
from tidings.registry.model import (
    Approval,
    Exposure,
    FilterText,
    Name,
    NamespaceSource,
    Paper,
    ProjectionText,
    Provider,
    Pull,
    Push,
    Subscription,
    Topic,
    TopicsSource,
)
from tidings.registry.port import Document
from tidings.registry.rules.avro import avro_faults, avro_meaning_faults
from tidings.registry.rules.callbacks import push_faults
from tidings.registry.rules.credentials import credential_faults, provider_faults
from tidings.registry.rules.faults import Fault, between, refuse
from tidings.registry.rules.feeds import feed_faults, reserved_aliases
from tidings.registry.rules.names import name_fault, namespace_fault
from tidings.registry.rules.scopes import scopes_faults, union, wanted_faults

DAY = 86400.0
RETENTION = (1.0, 3650 * DAY)
EVENT_BYTES = (1, 16 << 20)
TEXT_CHARACTERS = 4096
LABELS = 64
SOURCE_TOPICS = 1000
LISTED = 1000
SCHEMA_BYTES = 256 << 10
FILTER_BYTES = 64 << 10
LAYOUT_BYTES = 16 << 10
PAPER_BYTES = 1 << 20

ParseFilter = Callable[[str, Any], object]
CompileSchema = Callable[[Mapping[str, Any]], object]


def check(
    documents: Sequence[Document],
    *,
    parse: ParseFilter | None = None,
    compile_schema: CompileSchema | None = None,
    reserved: Sequence[str] = (),
) -> None:
    """Raise InvalidDocument unless every document is right in itself, filters and schemas included.

    Called before a change, outside of the log's fence: reading a filter takes longer than a fence should last.
    `parse` is `tidings.filters.parse` unless given; schemas are compiled by `compile_schema` where one is given; `reserved` are
    addresses that no feed may have as an alias.
    """
    read = parse or _parse_filter

    def faults(document: Document) -> list[Fault]:
        aliases = reserved_aliases(document.feed, reserved) if isinstance(document, Topic) else ()
        return [*shape_faults(document), *aliases, *_meaning_faults(document, read, compile_schema)]

    refuse(documents, faults)


def check_shape(documents: Sequence[Document]) -> None:
    """The quick part of `check`: everything but the meaning of filters and schemas."""
    refuse(documents, shape_faults)


def shape_faults(document: Document) -> list[Fault]:
    """Everything wrong with a document, but for the meaning of its filter or schema."""
    match document:
        case Topic():
            return list(_topic(document))
        case Exposure():
            return list(_exposure(document))
        case Subscription():
            return list(_subscription(document))
        case Approval():
            return [*_name("subscription", document.subscription), *_name("topic", document.topic)]
        case Provider():
            return list(provider_faults(document))
        case Paper():
            return [*_name("name", document.name), *_json("text", document.text, PAPER_BYTES)]
        case _:
            assert_never(document)


def _topic(topic: Topic) -> Iterator[Fault]:
    yield from _name("name", topic.name)
    yield from _text("description", topic.description)
    yield from between("retention", topic.retention, RETENTION, "seconds")
    yield from between("max_event_bytes", topic.max_event_bytes, EVENT_BYTES, "bytes")
    if topic.duplicates is not None:
        yield from _duplicates(topic.duplicates)
    if not (topic.key_attribute.isascii() and topic.key_attribute.isalnum() and topic.key_attribute.islower()):
        yield "key_attribute", "a CloudEvents attribute has lower-case letters and digits"
    if topic.schema is not None:
        yield from _json("schema", topic.schema, SCHEMA_BYTES)
    yield from avro_faults(topic)
    yield from _labels(topic.labels)
    yield from feed_faults(topic.feed)


def _duplicates(setting: str) -> Iterator[Fault]:
    if setting in ("off", "forever"):
        return
    try:
        window = config.seconds(setting)
    except ValueError:
        yield "duplicates", 'expected "off", a window such as "24h", or "forever"'
        return
    yield from between("duplicates", window, RETENTION, "seconds")


def _exposure(exposure: Exposure) -> Iterator[Fault]:
    yield from _name("topic", exposure.topic)
    lists = {"publishers": exposure.publishers, "subscribers": exposure.subscribers, "trusted": exposure.trusted}
    for path, patterns in lists.items():
        if len(patterns) > LISTED:
            yield path, f"at most {LISTED} can be listed"
        yield from ((f"{path}[{n}]", "an empty text lists nobody") for n, pattern in enumerate(patterns) if not pattern)
    yield from scopes_faults(exposure)
    for name, scope in exposure.scopes.items():
        yield from _filter(f"scopes.{name[:50]}.filter", scope.filter)
        yield from _projection(f"scopes.{name[:50]}.projection", scope.projection)


def _subscription(subscription: Subscription) -> Iterator[Fault]:
    yield from _name("name", subscription.name)
    yield from _source(subscription.source)
    if isinstance(subscription.delivery, Push):
        yield from push_faults(subscription.delivery)
        yield from credential_faults(subscription.delivery)
    yield from _filter("filter", subscription.filter)
    yield from _projection("projection", subscription.projection)
    yield from wanted_faults(subscription.scopes)
    yield from _text("owner", subscription.owner)
    yield from _text("description", subscription.description)
    yield from _text("blocked", subscription.blocked)
    yield from _labels(subscription.labels)
    yield from between("retention", subscription.retention, RETENTION, "seconds")
    if not isinstance(subscription.delivery, Pull) and subscription.delivery.layout is not None:
        yield from _json("delivery.layout", subscription.delivery.layout.settings, LAYOUT_BYTES)


def _filter(path: str, filter: FilterText | None) -> Iterator[Fault]:
    if filter is not None:
        yield from _json(f"{path}.text", filter.text, FILTER_BYTES)


def _projection(path: str, projection: ProjectionText | None) -> Iterator[Fault]:
    if projection is not None and not projection.paths:
        yield path, "a projection has at least one path"


def _source(source: TopicsSource | NamespaceSource) -> Iterator[Fault]:
    match source:
        case NamespaceSource(namespace):
            fault = namespace_fault(namespace)
            if fault:
                yield "source.namespace", fault
        case TopicsSource(topics):
            if not topics:
                yield "source.topics", "a subscription needs at least one topic"
            if len(topics) > SOURCE_TOPICS:
                yield "source.topics", f"at most {SOURCE_TOPICS} topics can be listed; a namespace takes any number"
            if len(set(topics)) < len(topics):
                yield "source.topics", "a topic is listed twice"
            for n, topic in enumerate(topics):
                yield from _name(f"source.topics[{n}]", topic)


def _name(path: str, name: Name) -> Iterator[Fault]:
    fault = namespace_fault(name.namespace) or name_fault(name.name)
    if fault:
        yield path, fault


def _text(path: str, text: str) -> Iterator[Fault]:
    if len(text) > TEXT_CHARACTERS:
        yield path, f"at most {TEXT_CHARACTERS} characters"


def _labels(labels: Mapping[str, str]) -> Iterator[Fault]:
    if len(labels) > LABELS:
        yield "labels", f"at most {LABELS} labels"
    for key, value in labels.items():
        if name_fault(key):
            yield "labels", f"{key[:50]!r} is no label: {name_fault(key)}"
        yield from _text(f"labels.{key[:50]}", value)


def _json(path: str, value: object, limit: int) -> Iterator[Fault]:
    try:
        length = len(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        yield path, "it cannot be written as JSON"
        return
    if length > limit:
        yield path, f"at most {limit} bytes as JSON"


def _meaning_faults(document: Document, parse: ParseFilter, compile_schema: CompileSchema | None) -> Iterator[Fault]:
    match document:
        case Topic(schema=schema) if schema is not None and compile_schema is not None:
            yield from _refused("schema", partial(compile_schema, schema))
        case Topic():
            yield from avro_meaning_faults(document)
        case Subscription():
            yield from _filter_meaning("filter", document.filter, parse)
            yield from _projection_meaning("projection", document.projection)
        case Exposure(scopes=scopes):
            for name, scope in scopes.items():
                yield from _filter_meaning(f"scopes.{name[:50]}.filter", scope.filter, parse)
                yield from _projection_meaning(f"scopes.{name[:50]}.projection", scope.projection)
            # Those of several scopes may be used together.
            yield from _projection_meaning("scopes", union([one.projection for one in scopes.values() if one.projection]))


def _filter_meaning(path: str, filter: FilterText | None, parse: ParseFilter) -> Iterator[Fault]:
    if filter is not None:
        yield from _refused(path, partial(parse, filter.dialect, filter.text))


def _projection_meaning(path: str, projection: ProjectionText | None) -> Iterator[Fault]:
    if projection is not None:
        yield from _refused(path, partial(_parse_projection, projection))


def _refused(path: str, reading: Callable[[], object]) -> Iterator[Fault]:
    try:
        reading()
    except Malformed as error:
        yield path, str(error)


def _parse_filter(dialect: str, text: Any) -> object:
    # Imported late: whoever only reads the registry needs no dialect.
    from tidings import filters

    return filters.parse(dialect, text)


def _parse_projection(text: ProjectionText) -> object:
    from tidings.filters.projection import projection

    return projection(text.mode, text.paths, text.syntax)
