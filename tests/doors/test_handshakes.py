"""Addresses that the strict doors take: CT-24, SSRF-01, SSRF-09, SSRF-10."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.delivery.worlds import quick_settings
from tidings.clock import SystemClock
from tidings.delivery.push.egress.address_guard import Guard
from tidings.delivery.push.egress.reach import Reach
from tidings.doors.handshakes import check_sink
from tidings.errors import Malformed, SinkForbidden, TidingsError
from tidings.registry.rules.callback_addresses import STRICT, SinkRules

NAMES = {"public.example": ["1.2.3.4"], "private.example": ["10.0.0.1"], "mixed.example": ["1.2.3.4", "fd00::1"]}


async def lookup(host: str, port: int) -> Sequence[str]:
    if host not in NAMES:
        raise OSError(host)
    return NAMES[host]


def refusal(tmp_path: Path, url: str, rules: SinkRules, **choice: bool) -> type[TidingsError] | None:
    """How the address is refused; None: it is taken."""

    async def scenario() -> type[TidingsError] | None:
        settings = quick_settings(tmp_path, allow=["10.1.0.0/16", "*.allowed.example"], allow_loopback="no")
        reach = Reach(settings, SystemClock())
        reach.guard = Guard(reach.rules, lookup)
        parts: Any = SimpleNamespace(reach=lambda: reach)
        try:
            await check_sink(parts, url, rules, **choice)
        except TidingsError as error:
            assert "10.0.0.1" not in str(error).replace(url, "") and "fd00" not in str(error)
            return type(error)
        finally:
            await reach.close()
        return None

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("https://public.example/in", None),
        ("http://public.example/in", Malformed),
        ("https://u:p@public.example/in", Malformed),
        ("https://public.example/in#x", Malformed),
        ("https://127.0.0.1/in", SinkForbidden),
        ("https://[::ffff:10.0.0.2]/in", SinkForbidden),
        ("https://2130706433/in", SinkForbidden),
        ("https://private.example/in", SinkForbidden),
        ("https://mixed.example/in", SinkForbidden),
        ("https://nowhere.example/in", SinkForbidden),
        ("http://10.1.2.3/in", None),
        ("https://10.1.2.3/in", None),
    ],
)
def test_strict_doors_judge_an_address_before_it_is_stored(
    tmp_path: Path, url: str, refused: type[TidingsError] | None
) -> None:
    assert refusal(tmp_path, url, STRICT) is refused


def test_a_name_without_an_address_may_be_left_to_later(tmp_path: Path) -> None:
    assert refusal(tmp_path, "https://nowhere.example/in", STRICT, must_resolve=False) is None
    assert refusal(tmp_path, "https://private.example/in", STRICT, must_resolve=False) is SinkForbidden


def test_a_door_that_looks_nothing_up_takes_what_it_cannot_reach(tmp_path: Path) -> None:
    rules = SinkRules(user_info=True)
    assert refusal(tmp_path, "http://u:p@nowhere.example/in", rules) is None
    assert refusal(tmp_path, "http://10.0.0.1/in", rules) is None, "that it is blocked shows at the first attempt"
