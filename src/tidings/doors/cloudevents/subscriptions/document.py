"""A subscription as its subscriber writes it (SUB-02 to SUB-16): read as a whole, with every fault at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidings.access.secrets import COVER
from tidings.doors.cloudevents.subscriptions.configuration import Configuration, configuration_in
from tidings.doors.cloudevents.subscriptions.faults import Faults
from tidings.doors.cloudevents.subscriptions.sink_credential import credential_in
from tidings.errors import FilterSyntaxError, Malformed, shortened
from tidings.events import json_text
from tidings.events.json_text import kind_of
from tidings.registry.credentials import TokenCredential
from tidings.registry.model import FilterText, Push, Subscription
from tidings.registry.rules.callbacks import is_reserved, url_fault

if TYPE_CHECKING:
    from tidings.filters import RegexRules

DIALECT = "cloudevents"
HTTP, POST = "HTTP", "POST"
CRITERIA = ("source", "types", "filters", "config")
"""Members that only this door's document keeps as they were written."""

_MOST_TYPES = 400


@dataclass(frozen=True, slots=True)
class SubscriptionDocument:
    """What was asked for. `criteria`: the members of `CRITERIA` as they were written."""

    sink: str
    filter: FilterText | None
    configuration: Configuration
    headers: Mapping[str, str]
    credential: TokenCredential | None
    criteria: Mapping[str, Any]


def document_in(body: bytes, standing: Subscription | None, regex: RegexRules) -> SubscriptionDocument:
    """The document of a request. Raises Malformed for what is no JSON, InvalidDocument with every fault and its JSON pointer."""
    members = json_text.parse(body)
    if not isinstance(members, dict):
        raise Malformed(f"a subscription is a JSON object, not {kind_of(members)}")
    faults = Faults()
    if "filter" in members:
        faults.add("/filter", "there is no such member; expected filters, a list", "unknown")
    id = members.get("id")
    if standing is not None and id is not None and id != standing.name.name:
        faults.add("/id", f"an id cannot be changed; expected {standing.name.name}")
    if members.get("protocol") != HTTP:
        code = "missing" if members.get("protocol") is None else "invalid"
        faults.add("/protocol", f"expected {HTTP}, found {shortened(members.get('protocol'))}", code)
    sink = _sink(members, faults)
    configuration = configuration_in(members.get("config"), faults)
    headers = _protocol_settings(members.get("protocolsettings"), sink, standing, faults)
    credential = credential_in(members.get("sinkcredential"), configuration.tokenplacement, sink, standing, faults)
    filter = _filter(members, faults, regex)
    faults.check()
    criteria = {name: members[name] for name in CRITERIA if members.get(name) is not None}
    return SubscriptionDocument(sink, filter, configuration, headers, credential, criteria)


def _sink(members: Mapping[str, Any], faults: Faults) -> str:
    raw = members.get("sink")
    if raw is None:
        faults.add("/sink", "it is required: the address of the sink", "missing")
        return ""
    sink = faults.text(raw, "/sink") or ""
    fault = url_fault(sink) if sink else None
    if fault:
        faults.add("/sink", fault)
    return sink


def _protocol_settings(raw: object, sink: str, standing: Subscription | None, faults: Faults) -> dict[str, str]:
    """The headers of deliveries. A value that is shown as *** may be put back for the same sink."""
    if raw is None:
        return {}
    members = faults.object(raw, "/protocolsettings")
    if members.get("method") not in (None, POST):
        faults.add("/protocolsettings/method", f"expected {POST}, found {shortened(members['method'])}")
    if members.get("headers") is None:
        return {}
    push = standing.delivery if standing is not None else None
    held = push.headers if isinstance(push, Push) and push.url == sink else {}
    headers: dict[str, str] = {}
    for name, value in faults.object(members["headers"], "/protocolsettings/headers").items():
        pointer = f"/protocolsettings/headers/{name[:80].replace('~', '~0').replace('/', '~1')}"
        if not isinstance(value, str):
            faults.add(pointer, f"expected a text, found {kind_of(value)}")
        elif is_reserved(name):
            faults.add(pointer, "this header is the hub's own")
        elif value == COVER and name not in held:
            faults.add(pointer, f"there is no value yet that {COVER} could stand for at this sink")
        else:
            headers[name] = held[name] if value == COVER else value
    return headers


def _filter(members: Mapping[str, Any], faults: Faults, regex: RegexRules) -> FilterText | None:
    """One filter for `source`, `types` and `filters`; null and empty ones always hold (SUB-02)."""
    parts: list[Any] = []
    if members.get("source") is not None and (source := faults.text(members["source"], "/source")):
        parts.append({"exact": {"source": source}})
    types = _types(members.get("types"), faults)
    if types:
        exact = [{"exact": {"type": type}} for type in types]
        parts.append(exact[0] if len(exact) == 1 else {"any": exact})
    filters = members.get("filters")
    if filters is not None and not isinstance(filters, list):
        faults.add("/filters", f"expected a list of filters, found {kind_of(filters)}")
    elif filters:
        _check(filters, faults, regex)
        parts += filters
    return FilterText(dialect=DIALECT, text=parts) if parts else None


def _types(raw: object, faults: Faults) -> list[str]:
    if raw is None:
        return []
    if not isinstance(raw, list) or len(raw) > _MOST_TYPES:
        faults.add("/types", f"expected a list of at most {_MOST_TYPES} texts, found {shortened(raw)}")
        return []
    return [text for number, one in enumerate(raw) if (text := faults.text(one, f"/types/{number}"))]


def _check(filters: list[Any], faults: Faults, regex: RegexRules) -> None:
    # Imported late: the filters need numpy, which nobody who only publishes should wait for.
    from tidings.filters import parse

    try:
        parse(DIALECT, filters, regex)
    except FilterSyntaxError as error:
        found = f", found {shortened(error.found)}" if error.found is not None else ""
        expected = f"; expected {error.expected}" if error.expected else ""
        pointer, _, column = error.at.partition(", ")
        faults.add(f"/filters{pointer}", f"{error.what}{f' at {column}' if column else ''}{found}{expected}", error.code)
