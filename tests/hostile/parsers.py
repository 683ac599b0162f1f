"""Every parser of this hub that reads what comes from outside."""

from __future__ import annotations

import base64
import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import msgspec

from tests.hostile import texts
from tests.hostile.texts import Make
from tidings import config, filters, yaml12
from tidings.access import issuer_keys, jwts
from tidings.cli import receiver as cli_receiver
from tidings.cli.horizon import rovers as cli_rovers
from tidings.cli.terminal import input_text as cli_given
from tidings.client import http as hub_client
from tidings.client.feeds import answers as feed_answers
from tidings.client.feeds import discovery as feed_discovery
from tidings.client.feeds.lines import Lines
from tidings.clock import Instant
from tidings.delivery.push.egress.exchange import Reply
from tidings.delivery.push.request import oauth
from tidings.doors.deliveries.start_points import instant_of
from tidings.doors.feeds import query as feed_query
from tidings.doors.feeds.refusals import FeedRefused
from tidings.doors.horizon.documents import request_body
from tidings.doors.horizon.documents.apply_plan import given
from tidings.doors.horizon.documents.settings import DocumentSettings
from tidings.doors.horizon.names import Team
from tidings.doors.horizon.publish import resource
from tidings.doors.horizon.resources.request import LARGEST
from tidings.errors import FeedUnreadable, HubProblem, Rejected, Unauthenticated, Unavailable
from tidings.events import json_text, uris
from tidings.events.avro.compatibility import unreadable
from tidings.events.avro.schema import compiled
from tidings.events.http_binding import Limits, decode
from tidings.events.plain import Unnamed, published
from tidings.events.schema import Schema
from tidings.filters.dialects import DIALECTS
from tidings.filters.jsonpath import Flavor
from tidings.filters.jsonpath import compile as jsonpath
from tidings.filters.projection import ProjectionMode, Syntax, project, projection
from tidings.filters.regex_rules import RegexRules
from tidings.log.cursor import marks_of
from tidings.registry.rules import parse_name

_LIMITS = Limits(max_event_bytes=16 << 20, batch_events=10_000, batch_bytes=16 << 20)
_UNNAMED = Unnamed("/topics/orders", "orders", Instant(0), lambda: "1")


@dataclass(frozen=True)
class Parser:
    """Reads a text; gives anything, or raises Rejected."""

    read: Callable[[str], object]
    texts: Mapping[str, Make]


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _value(text: str) -> Any:
    """What a filter or schema arrives as: JSON that the door read, or a text."""
    try:
        return json_text.parse(_raw(text))
    except Rejected:
        return text


def _documents(text: str) -> list[object]:
    """Documents of the Horizon door, read to the end."""
    return [given(one, Team("hub", "team"), DocumentSettings()) for one in request_body.documents_in(_raw(text), json=False)]


def _rover(text: str) -> object:
    """A Rover with this as everything that it can hold."""
    value = _value(text)
    trigger = {"advancedSelectionFilter": value, "responseFilter": value, "selectionFilter": value}
    listed = {"responseFilter": [text], "selectionFilter": {text: text}, "responseFilterSyntax": "jsonpath"}
    entries = [
        {"eventType": text, "deliveryType": text, "callback": text, "trigger": trigger, "deliveryPolicy": value},
        {"eventType": "a.v1", "deliveryType": "callback", "callback": text, "trigger": listed, "scopes": value},
    ]
    exposure = {"eventType": "a.v1", "scopes": [{"name": text, "trigger": trigger}], "approval": value, "visibility": text}
    spec = {"zone": text, "exposures": [exposure, value], "subscriptions": [*entries, value]}
    raw = {"apiVersion": value, "kind": "Rover", "metadata": {"name": text}, "spec": spec}
    return _sent(raw)


def _specification(text: str) -> object:
    spec = {"type": text, "version": text, "description": text, "category": text, "specification": _value(text)}
    raw = {"apiVersion": text, "kind": "EventSpecification", "metadata": {"name": text}, "spec": spec}
    return _sent(raw)


def _sent(raw: Any) -> list[object]:
    """The document as it arrives in a request."""
    body = msgspec.json.encode(raw)
    if len(body) > LARGEST:
        return []
    return [given(one, Team("hub", "team"), DocumentSettings()) for one in request_body.documents_in(body, json=True)]


def _filter(dialect: str, rules: RegexRules) -> Callable[[str], None]:
    """The text as the whole filter, and as every name and value in filters of the usual shapes."""

    def read(text: str) -> None:
        value = _value(text)
        shapes = [
            value,
            {"eq": {"field": text, "value": value}},
            {"rx": {"field": "$.a", "value": text}},
            {"and": [value, value]},
            [{"type": "jsonpath", "path": text, "matcher": text}],
            {text: [value]},
            {text: value},
            {"a": [{"wildcard": text}, {"regex": text}, {"prefix": value}]},
            [{"exact": {text: text}}, {"sql": text}, {"not": value}],
            [{"all": value}],
        ]
        for raw in shapes:
            with contextlib.suppress(Rejected):
                filters.parse(dialect, raw, rules)

    return read


def _paths(syntax: Syntax) -> Callable[[str], object]:
    return lambda text: projection(ProjectionMode.INCLUDE, [text], syntax)


def _projected(text: str) -> object:
    """A hostile payload, with parts of it taken away."""
    dotted = projection(ProjectionMode.EXCLUDE, ["a.b", "a.*.c", "0.0.0"])
    found = projection(ProjectionMode.INCLUDE, ["$..a", "$[?(@.a > 1)].b"], Syntax.JSONPATH)
    return project(dotted, _raw(text)), project(found, _raw(text))


def _requests(content_type: bytes) -> Callable[[str], object]:
    return lambda text: published([(b"content-type", content_type)], _raw(text), _LIMITS, _UNNAMED)


def _headers(text: str) -> object:
    """Everything in a CloudEvent in binary form."""
    cut = _raw(text)[: 60 << 10]
    named = [(b"ce-%b" % name, cut) for name in (b"id", b"source", b"type", b"specversion", b"time", b"subject", b"x")]
    return decode([(b"content-type", cut), *named], b"{}", _LIMITS)


def _schema(text: str) -> object:
    schema = Schema.compiled(_value(text))
    deep, long = b'{"a":' * 100 + b"1" + b"}" * 100, b'"%b"' % (b"a" * 10_000)
    return [schema.faults(payload) for payload in (b"{}", b"[[[[[[1]]]]]]", b"[%b1]" % (b"1," * 2_000), long, deep)]


def _checked(text: str) -> object:
    """A hostile payload against a schema that refers to itself."""
    node = {"type": ["object", "array"], "properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}, "maxItems": 10}
    return Schema.compiled({"$schema": "https://json-schema.org/draft/2020-12/schema", **node}).faults(_raw(text))


_MANY = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
_AVRO_PAYLOADS = (
    b"",
    b"\x00" * 200_000,
    b"\x02" * 200_000,
    _MANY * 20_000,
    b"\xff" * 200_000,
    b"\x80" * 200_000,
    b"\x04" * 200_000,
)
"""Binary that is read as many items, deep nesting, long numbers or long texts, whatever the schema."""

_NODE = {"type": "record", "name": "Node", "fields": [
    {"name": "next", "type": ["null", "Node", {"type": "array", "items": ["null", "Node", "string"]}], "default": None},
    {"name": "a", "type": ["null", {"type": "map", "values": ["Node", "double", "bytes"]}], "default": None},
]}  # fmt: skip


def _avro_schema(text: str) -> None:
    """The text as a schema, the payloads that may be written by it, and its agreement with itself."""
    schema = compiled(text)
    nested: Any = {}
    for _ in range(60):
        nested = {"b": nested, "a": nested, "c": None} if len(text) % 2 else {"c": nested}
    readers: list[Callable[[], object]] = [
        *(partial(schema.value, payload) for payload in _AVRO_PAYLOADS),
        *(partial(schema.with_metadata, payload, {"a": "b"}) for payload in _AVRO_PAYLOADS),
        *(partial(schema.from_value, value) for value in ({}, [], [{}] * 10_000, "a" * 100_000, nested)),
        lambda: unreadable(schema.tree, schema.tree),
    ]
    for read in readers:
        with contextlib.suppress(Rejected):
            read()


def _avro_payload(text: str) -> None:
    """A hostile text for a schema that holds itself: as JSON, as Avro's own JSON, and as binary."""
    schema = compiled(json.dumps(_NODE))
    for read in (schema.from_json, schema.from_avro_json, schema.value, schema.check):
        with contextlib.suppress(Rejected):
            read(_raw(text))


def _query(text: str) -> object:
    cut = _raw(text)[: 60 << 10]
    names = (b"cursor0", b"pagesizehint", b"wait", b"event-types", b"headers", b"cursorset", b"resume")
    query = feed_query.Query(b"&".join(name + b"=" + cut for name in names) + b"&" + cut)
    readers: list[Callable[[], object]] = [
        query.cursors,
        lambda: feed_query.offset_in(query.one("cursor0") or ""),
        lambda: feed_query.wish_of(query),
        lambda: feed_query.seconds_to_wait(query),
        lambda: feed_query.headers_of(query),
        lambda: feed_query.keeping_of(query),
        lambda: feed_query.resumed(query, None),
    ]
    for read in readers:
        with contextlib.suppress(FeedRefused):
            read()
    return query


def _words(text: str) -> None:
    """The small texts of addresses and members: cursors, times, names, addresses, sizes and durations."""
    for read in (marks_of, instant_of, parse_name, uris.is_uri, uris.is_uri_reference, config.seconds, config.size):
        with contextlib.suppress(Rejected, ValueError):
            read(text)


def _command_line(text: str) -> None:
    """Files and texts that people give to commands."""
    for name in ("a.yaml", "a.json"):
        with contextlib.suppress(Rejected):
            cli_rovers.documents_in(cli_rovers.FileText(Path(name), text))
    with contextlib.suppress(Rejected):
        cli_given.json_in(text, "the event")


def _issued(text: str) -> object:
    """What the provider of a subscription's tokens answers."""
    asking = oauth.asking(oauth.Grant("http://tokens.example/", {}))
    next(asking)
    answers = (
        _raw(text),
        b'{"access_token": "a", "expires_in": %b}' % _raw(text),
        b'{"access_token": "a", "x": %b}' % _raw(text),
    )
    with contextlib.suppress(StopIteration):
        asking.send(Reply(status=200, body=answers[0]))
    return [oauth._issued(answer) for answer in answers]


def _feed(text: str) -> None:
    """What servers of feeds send to our client, which are anybody's."""
    for line in (text, f'{{"data": {text}}}', f'{{"data": {{"a": {text}}}, "cursor": "1"}}', f'{{"cursor": "1", "x": {text}}}'):
        with contextlib.suppress(FeedUnreadable):
            Lines("0").feed(_raw(line) + b"\n")
    for body in (text, f'{{"partitions": [{{"id": {text}}}]}}', f'{{"partitions": {text}}}'):
        with contextlib.suppress(FeedUnreadable):
            feed_discovery.read(_raw(body))
    feed_answers.refusal(400, {"retry-after": text[: 60 << 10]}, _raw(text), url="http://feed.example/")


def _answers(text: str) -> None:
    """What the command line reads of whatever answers at the address of a hub, or arrives at `tidings listen`."""
    with contextlib.suppress(HubProblem):
        hub_client._decoded(_raw(text))
    hub_client._problem(400, "", _raw(text))
    cli_receiver._json_or_text(_raw(text))


def _token(text: str) -> None:
    """A stranger's JWT."""
    part = base64.urlsafe_b64encode(_raw(text)[: 48 << 10]).rstrip(b"=").decode()
    for token in (text, f"{part}.{part}.{part}", f"eyJhbGciOiJub25lIn0.{part}."):
        for read in (jwts.key_id, jwts.issuer_in):
            with contextlib.suppress(Unauthenticated):
                read(token)


def _signing_keys(text: str) -> None:
    """What an issuer shows as its keys."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(_raw(text))
        file.flush()
        with contextlib.suppress(Unavailable):
            issuer_keys.fetch(file.name)


_FILTERS = {**texts.JSON, **texts.WORDS, **{f"expression: {name}": make for name, make in texts.EXPRESSIONS.items()}}
_ALL = {**texts.YAML, **texts.WORDS}

PARSERS: Mapping[str, Parser] = {
    "YAML": Parser(yaml12.documents_in, _ALL),
    "documents as YAML": Parser(_documents, _ALL),
    "documents as JSON": Parser(lambda text: request_body.documents_in(_raw(text), json=True), texts.JSON),
    "a Rover": Parser(_rover, {**_FILTERS, **texts.SCHEMAS}),
    "an EventSpecification": Parser(_specification, {**_FILTERS, **texts.SCHEMAS}),
    "JSON": Parser(lambda text: json_text.parse(_raw(text)), texts.JSON),
    "an event of the Horizon door": Parser(lambda text: resource._members(_raw(text)), texts.JSON),
    "a CloudEvent": Parser(_requests(b"application/cloudevents+json"), texts.JSON),
    "CloudEvents": Parser(_requests(b"application/cloudevents-batch+json"), texts.JSON),
    "plain JSON": Parser(_requests(b"application/json"), texts.JSON),
    "lines": Parser(_requests(b"application/x-ndjson"), texts.JSON),
    "headers of a CloudEvent": Parser(_headers, {**texts.JSON, **texts.WORDS}),
    "a JSON Schema": Parser(_schema, {**texts.JSON, **texts.SCHEMAS}),
    "a payload against a JSON Schema": Parser(_checked, texts.JSON),
    "an Avro schema": Parser(_avro_schema, {**texts.JSON, **texts.AVRO}),
    "an Avro payload": Parser(_avro_payload, texts.JSON),
    "a payload that is projected": Parser(_projected, texts.JSON),
    "dotted paths": Parser(_paths(Syntax.DOTTED), texts.WORDS),
    "JSONPaths of projections": Parser(_paths(Syntax.JSONPATH), texts.WORDS),
    "a query of feeds": Parser(_query, texts.WORDS),
    "small texts": Parser(_words, {**texts.WORDS, **texts.EXPRESSIONS}),
    "the command line": Parser(_command_line, _ALL),
    "answers to the command line": Parser(_answers, texts.JSON),
    "answers of token providers": Parser(_issued, texts.JSON),
    "feeds of others": Parser(_feed, texts.JSON),
    "a JWT": Parser(_token, texts.JSON),
    "keys of an issuer": Parser(_signing_keys, texts.JSON),
    **{
        f"JSONPath, {flavor}": Parser(lambda text, flavor=flavor: jsonpath(text, flavor), texts.WORDS)
        for flavor in get_args(Flavor)
    },  # type: ignore[misc]
    **{f"filters: {dialect}": Parser(_filter(dialect, filters.RE2_ONLY), _FILTERS) for dialect in DIALECTS},
    "filters that backtrack": Parser(_filter("horizon", RegexRules(fallback=True)), _FILTERS),
}
