"""What documents may say by themselves, as tables."""

from typing import Any

import pytest

from tests.builders import a_filter, a_subscription, a_topic, an_exposure
from tidings.errors import FilterSyntaxError, InvalidDocument, Malformed
from tidings.registry.delivery_options import Ordering
from tidings.registry.model import Name, NamespaceSource, Push, Topic, TopicsSource
from tidings.registry.port import Document
from tidings.registry.rules import check, check_shape


def faulty(*documents: Document) -> list[tuple[int, str]]:
    """Which fields of which documents are refused."""
    try:
        check_shape(documents)
    except InvalidDocument as refused:
        return [(fault.index, fault.attribute) for fault in refused.faults]
    return []


def pushing(url: str = "https://shop.example/hook", **fields: Any) -> Document:
    return a_subscription(delivery=Push(url=url, **fields))


@pytest.mark.parametrize(
    "document",
    [
        a_topic(),
        a_topic(retention=1, max_event_bytes=1, duplicates="off"),
        a_topic(retention=3650 * 86400.0, max_event_bytes=16 << 20, duplicates="forever"),
        a_topic(duplicates="24h", key_attribute="tenant2", schema={"type": "object"}, labels={"team": "shop"}),
        an_exposure(publishers=("shop-*",), subscribers=()),
        a_subscription(),
        a_subscription(source=NamespaceSource("horizon/prod")),
        pushing(),
        pushing("http://127.0.0.1:9000/in?x=1&y=%20"),
        pushing("http://[::1]:9000/"),
        pushing("http://127.1:9000/"),
        pushing("http://2130706433/"),
        pushing("http://0x7f.0.0.01/"),
        pushing("http://hooks.example./in"),
        pushing("http://1and1.example/"),
        pushing("http://my_hooks.example/"),
        pushing("http://[::ffff:127.0.0.1]:9000/"),
        pushing(headers={"Authorization": "Bearer x"}, tries=1, inflight=10_000, retry_first=1, retry_max=1),
    ],
)
def test_a_right_document_passes(document: Document) -> None:
    assert faulty(document) == []


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (a_topic("~x"), "name"),
        (a_topic(retention=0.5), "retention"),
        (a_topic(retention=float("nan")), "retention"),
        (a_topic(retention=3651 * 86400.0), "retention"),
        (a_topic(max_event_bytes=0), "maxEventBytes"),
        (a_topic(max_event_bytes=(16 << 20) + 1), "maxEventBytes"),
        (a_topic(duplicates="sometimes"), "duplicates"),
        (a_topic(duplicates="0s"), "duplicates"),
        (a_topic(duplicates=""), "duplicates"),
        (a_topic(key_attribute="Tenant"), "keyAttribute"),
        (a_topic(key_attribute=""), "keyAttribute"),
        (a_topic(schema={"x": object()}), "schema"),
        (a_topic(schema={"x": "y" * (256 << 10)}), "schema"),
        (a_topic(description="x" * 4097), "description"),
        (a_topic(labels={"a b": "x"}), "labels"),
        (a_topic(labels={"a": "x" * 4097}), "labels.a"),
        (a_topic(labels={f"l{n}": "" for n in range(65)}), "labels"),
        (an_exposure("~x"), "topic"),
        (an_exposure(publishers=("",)), "publishers[0]"),
        (a_subscription("a b"), "name"),
        (a_subscription(source=TopicsSource(())), "source.topics"),
        (a_subscription("s", "orders", "orders"), "source.topics"),
        (a_subscription("s", "orders", "~x"), "source.topics[1]"),
        (a_subscription("s", *(f"t{n}" for n in range(1001))), "source.topics"),
        (a_subscription(source=NamespaceSource("a b")), "source.namespace"),
        (a_subscription(filter=a_filter("x" * (64 << 10))), "filter.text"),
        (a_subscription(filter=a_filter("\ud800")), "filter.text"),
        (a_subscription(owner="x" * 4097), "owner"),
        (pushing(inflight=0), "delivery.inflight"),
        (pushing(tries=0), "delivery.tries"),
        (pushing(retry_first=0), "delivery.retryFirst"),
        (pushing(retry_first=2, retry_max=1), "delivery.retryFirst"),
        (pushing(attempt_timeout=601), "delivery.attemptTimeout"),
        (pushing(headers={"a b": "x"}), "delivery.headers.a b"),
        (pushing(headers={"x": "a\r\nb: c"}), "delivery.headers.x"),
        (pushing(headers={"Host": "x"}), "delivery.headers.Host"),
        (pushing(headers={"ce-id": "x"}), "delivery.headers.ce-id"),
        (pushing(headers={"Tidings-Attempt": "9"}), "delivery.headers.Tidings-Attempt"),
        (pushing(preset="hermes-batch", ordering=Ordering.KEY), "delivery.ordering"),
        (pushing(headers={"X": "1", "x": "2"}), "delivery.headers"),
    ],
)
def test_a_fault_is_told_with_its_path(document: Document, path: str) -> None:
    assert faulty(document) == [(0, path)]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "shop.example/hook",
        "//shop.example/hook",
        "ftp://shop.example/",
        "https://",
        "https:///hook",
        "https://user:pw@shop.example/",
        "https://user@shop.example/",
        "https://shop.example/#part",
        "https://shop.example/#",
        "https://shop.example:99999/",
        "https://shop.example:0/",
        "https://shop.example:x/",
        "http://256.256.256.256/",
        "http://1.2.3.4.5/",
        "http://1.2.3.256/",
        "http://shop.256/",
        "http://4294967296/",
        "http://0x100000000/",
        "http://09/",
        "http://[::zz]/",
        "http://[1:2]/",
        "http://a..example/",
        "http://.example/",
        f"http://{'a' * 64}.example/",
        "https://[::1/",
        "https://shop example/",
        "https://shop.example/a b",
        "https://shöp.example/",
        "https://shop.example/\r\nx: y",
        "https://a<b/",
        "https://shop.example/" + "x" * 2048,
    ],
)
def test_a_callback_address_that_cannot_be_called_is_refused(url: str) -> None:
    assert faulty(pushing(url)) == [(0, "delivery.url")]


def test_all_faults_of_all_documents_are_told_at_once() -> None:
    wrong = a_subscription("a b", "~x", delivery=Push(url="x", tries=0))
    assert faulty(a_topic(retention=0), a_topic(), wrong) == [
        (0, "retention"),
        (2, "name"),
        (2, "source.topics[0]"),
        (2, "delivery.url"),
        (2, "delivery.tries"),
    ]


def test_a_name_of_a_namespace_out_of_line_is_refused() -> None:
    assert faulty(Topic(name=Name("a//b", "x"))) == [(0, "name")]


def test_a_filter_is_read_when_checked_and_its_fault_told() -> None:
    def parse(dialect: str, text: object) -> object:
        raise FilterSyntaxError("unknown word", at="op", found=text)

    with pytest.raises(InvalidDocument, match="unknown word") as refused:
        check([a_topic(), a_subscription(filter=a_filter("x"))], parse=parse)
    assert [(fault.index, fault.attribute) for fault in refused.value.faults] == [(1, "filter")]


def test_a_subscription_without_filter_needs_no_dialect() -> None:
    def parse(dialect: str, text: object) -> object:
        raise AssertionError("nothing to parse")

    check([a_subscription()], parse=parse)


def test_a_schema_is_compiled_when_checked_and_its_fault_told() -> None:
    def compiled(schema: object) -> object:
        raise Malformed("no such type")

    with pytest.raises(InvalidDocument, match="no such type at schema"):
        check([a_topic(schema={"type": "x"})], compile_schema=compiled)
