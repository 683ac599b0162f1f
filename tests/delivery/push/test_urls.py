"""How the URLs of requests are read: as browsers do, since what is read here is judged, dialed and named in the Host header."""

from __future__ import annotations

import pytest

from tidings.delivery.push.egress.urls import EndpointOrigin, RequestUrl

HOSTS = [
    # Names
    ("http://host.example/", "host.example", 80), ("HTTP://Host.EXAMPLE/", "host.example", 80),
    ("http://host.example./", "host.example.", 80), ("http://a_b.example/", "a_b.example", 80),
    ("http://ab--c.example/", "ab--c.example", 80), ("http:host.example", "host.example", 80),
    ("http:\\\\host.example\\in", "host.example", 80), (" http://ho\tst.example/\n", "host.example", 80),
    ("http://%68ost.example/", "host.example", 80),
    # IDNA
    ("http://bücher.example/", "xn--bcher-kva.example", 80), ("http://BÜCHER.example/", "xn--bcher-kva.example", 80),
    ("http://bu\u0308cher.example/", "xn--bcher-kva.example", 80), ("http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80),
    ("http://b%C3%BCcher.example/", "xn--bcher-kva.example", 80), ("http://faß.example/", "xn--fa-hia.example", 80),
    ("http://\uff48ost\u3002example/", "host.example", 80), ("http://ho\u00adst.example/", "host.example", 80),
    ("http://💩.example/", "xn--ls8h.example", 80),
    # Numbers
    ("http://127.0.0.1/", "127.0.0.1", 80), ("http://127.1/", "127.0.0.1", 80), ("http://127.0.1/", "127.0.0.1", 80),
    ("http://0x7f.1/", "127.0.0.1", 80), ("http://0X7F000001/", "127.0.0.1", 80), ("http://0177.0.0.01/", "127.0.0.1", 80),
    ("http://2130706433/", "127.0.0.1", 80), ("http://127.0.0.1./", "127.0.0.1", 80), ("http://0/", "0.0.0.0", 80),
    ("http://0x/", "0.0.0.0", 80), ("http://①②⑦.0.0.1/", "127.0.0.1", 80), ("http://%31%32%37%2e1/", "127.0.0.1", 80),
    ("http://127。0。0。1/", "127.0.0.1", 80), ("http://1e3/", "1e3", 80), ("http://-1/", "-1", 80),
    # IPv6
    ("http://[::1]/", "[::1]", 80), ("http://[::1]:8080/", "[::1]", 8080), ("http://[0:0:0:0:0:0:0:1]/", "[::1]", 80),
    ("http://[::127.0.0.1]/", "[::7f00:1]", 80), ("http://[::FFFF:127.0.0.1]/", "[::ffff:7f00:1]", 80),
    ("http://[64:ff9b::10.0.0.1]/", "[64:ff9b::a00:1]", 80), ("http://[1:0:0:2:0:0:0:3]/", "[1:0:0:2::3]", 80),
    # Ports
    ("http://host.example:80/", "host.example", 80), ("http://host.example:443/", "host.example", 443),
    ("https://host.example/", "host.example", 443), ("https://host.example:443/", "host.example", 443),
    ("https://host.example:80/", "host.example", 80), ("http://host.example:/", "host.example", 80),
    ("http://host.example:00081/", "host.example", 81), ("http://host.example:0/", "host.example", 0),
    ("http://host.example:65535/", "host.example", 65535),
    # User and password, and what looks like them
    ("http://user:p%40ss@host.example:81/", "host.example", 81), ("http://:@host.example/", "host.example", 80),
    ("http://one@two@host.example/", "host.example", 80), ("http://one.example%23@two.example/", "two.example", 80),
    ("http://one.example#@two.example/", "one.example", 80), ("http://one.example?@two.example/", "one.example", 80),
    ("http://one.example\\@two.example/", "one.example", 80), ("http://127.0.0.1:80@two.example/", "two.example", 80),
]  # fmt: skip

TARGETS = [
    ("http://h", "/"), ("http://h/?", "/"), ("http://h?a=1", "/?a=1"), ("http://h/a#b?c", "/a"), ("http://h/a?b#c", "/a?b"),
    ("http://h//a//b/", "//a//b/"), ("http://h/../a/./b/%2e%2E/c", "/a/c"), ("http://h/a\\b", "/a/b"),
    ("http://h/a b?c d", "/a%20b?c%20d"), ("http://h/a%20b%zz%?c%20d%zz%", "/a%20b%zz%?c%20d%zz%"), ("http://h/a%2Fb", "/a%2Fb"),
    ("http://h/ü?ü", "/%C3%BC?%C3%BC"), ("http://h/💩?💩", "/%F0%9F%92%A9?%F0%9F%92%A9"),
    ("http://h/\"<>`{}|'", "/%22%3C%3E%60%7B%7D|'"),
    ("http://h/?\"<>`{}|^'\\", "/?%22%3C%3E`{}|^%27\\"), ("http://h/a;b=c,d!$&()*+:@-._~", "/a;b=c,d!$&()*+:@-._~"),
    ("http://h/a\r\nHost: b?c\r\nd", "/aHost:%20b?cd"), ("http://h/\x00\x01\x7f?\x00\x7f", "/%00%01%7F?%00%7F"),
    ("http://h/??a?", "/??a?"),
]  # fmt: skip

REFUSED = [
    "", "/a", "//host.example/a", "host.example/a", "no address", "http://", "http:///", "http://?a", "https://:80/", "http://@/",
    "ftp://host.example/", "ws://host.example/", "file:///etc/passwd", "mailto:a@host.example", "data:,a", "unix://host.example/",
    "http://256.1.1.1/", "http://4294967296/", "http://1.2.3.4.5/", "http://1.2.3.08/", "http://host.1/", "http://1.16777216/",
    "http://[::1/", "http://[]/", "http://[1::2::3]/", "http://[::1.2.3]/", "http://[fe80::1%25eth0]/", "http://[::1]a/",
    "http://host.example:65536/", "http://host.example:8a/", "http://host.example:-1/", "http://a b/", "http://a%20b/", "http://a%00b/",
    "http://a<b/", "http://a^b/", "http://a|b/", "http://a%2fb/", "http://a%40b/", "http://a%3a80/", "http://%zz/", "http://\u00ad/",
    "http://h/\ud800",
]  # fmt: skip


@pytest.mark.parametrize(("url", "host", "port"), HOSTS)
def test_hosts_and_ports_are_read_as_browsers_read_them(url: str, host: str, port: int) -> None:
    origin = RequestUrl.parse(url).origin
    assert origin == EndpointOrigin("https" if url.startswith("https") else "http", host, port)


@pytest.mark.parametrize(("url", "target"), TARGETS)
def test_paths_and_queries_are_sent_as_browsers_send_them(url: str, target: str) -> None:
    assert RequestUrl.parse(url).target == target


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_not_an_http_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        RequestUrl.parse(url)


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("http://host.example:80/", "host.example"), ("https://host.example/", "host.example"),
        ("http://host.example:443/", "host.example:443"),
        ("https://user:secret@host.example:8443/", "host.example:8443"), ("http://[::1]/", "[::1]"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)  # fmt: skip
def test_the_host_header_names_the_port_where_it_is_not_the_usual_one(url: str, header: str) -> None:
    assert RequestUrl.parse(url).origin.host_header == header


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h/in", "/in?a+b=c%26d%3De&%C3%BC=%2B%25%7E*-._&=x&y="),
        ("http://h/in?z=%20+#f", "/in?z=%20+&a+b=c%26d%3De&%C3%BC=%2B%25%7E*-._&=x&y="),
    ],
)
def test_more_in_the_query_leaves_what_is_there_as_it_is(url: str, target: str) -> None:
    pairs = [("a b", "c&d=e"), ("ü", "+%~*-._"), ("", "x"), ("y", "")]
    assert RequestUrl.parse(url).with_query(pairs).target == target
    assert RequestUrl.parse(url).with_query([]) == RequestUrl.parse(url)
