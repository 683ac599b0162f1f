"""Arbitrary valid events."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tidings.events.attribute_rules import checked, name_problem
from tidings.events.model import Event

KNOWN = frozenset(("specversion", "id", "source", "type", "time", "subject", "datacontenttype", "dataschema"))

_allowed = st.characters(exclude_categories=["Cs", "Cc", "Cn"])
texts = st.text(_allowed, max_size=12)
filled_texts = st.text(_allowed, min_size=1, max_size=12)
names = st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True).filter(lambda name: name not in KNOWN and name_problem(name) is None)
values = texts | st.integers(-(2**31), 2**31 - 1) | st.booleans()
sources = st.sampled_from(["/orders", "https://example.com/a?b=c#d", "urn:x:y", "a%20b", "//host/p", "#f"])
times = st.sampled_from(["2018-04-05T03:56:24Z", "2016-12-31t23:59:60.123456789+01:00"])
transports = st.dictionaries(
    st.sampled_from(["traceparent", "tracestate", "baggage"]), st.from_regex(r"[!-~]{1,10}", fullmatch=True)
)

_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda child: st.lists(child, max_size=3) | st.dictionaries(st.text(max_size=5), child, max_size=3),
    max_leaves=8,
)
_spellings = st.sampled_from(["1.0", "1e400", "12345678901234567890123", "-0", '{"b":1.50,"a":[ ]}'])
json_texts = _spellings.map(str.encode) | st.builds(
    lambda value, indent, ascii: json.dumps(value, indent=indent, ensure_ascii=ascii).encode("utf-8", "ignore"),
    _json_values,
    st.none() | st.just(1),
    st.booleans(),
).filter(lambda text: b"\\ud" not in text)

# (datacontenttype, data, base64), as the structured form tells them apart.
payloads = (
    st.tuples(st.none() | st.sampled_from(["application/json", "Text/X+JSON; a=b"]), json_texts, st.just(False))
    | st.tuples(
        st.sampled_from(["text/plain", "application/xml; charset=UTF-8"]), st.text().map(lambda t: t.encode()), st.just(False)
    )
    | st.tuples(st.none() | st.sampled_from(["image/png", "application/json"]), st.binary(), st.just(True))
    | st.tuples(st.none() | st.just("image/png"), st.none(), st.just(False))
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    attributes: dict[str, Any] = {
        "id": draw(filled_texts),
        "specversion": "1.0",
        "source": draw(sources),
        "type": draw(filled_texts),
        **draw(st.fixed_dictionaries({}, optional={"time": times, "subject": filled_texts, "dataschema": st.just("urn:s")})),
        **draw(st.dictionaries(names, values, max_size=3)),
    }
    content_type, data, base64 = draw(payloads)
    if content_type is not None:
        attributes["datacontenttype"] = content_type
    return checked(attributes, data, base64=base64, transport=draw(transports))
