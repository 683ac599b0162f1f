"""One timer for many waits."""

from __future__ import annotations

import asyncio

import pytest

from tidings.server.deadlines import Deadlines


def test_what_takes_too_long_ends_and_the_rest_goes_on() -> None:
    async def main() -> list[object]:
        deadlines = Deadlines(0.1)

        async def one(seconds: float) -> object:
            return await deadlines.within(asyncio.sleep(seconds, seconds))

        return await asyncio.gather(one(0.0), one(30.0), one(0.01), one(30.0), return_exceptions=True)

    first, late, second, later = asyncio.run(main())
    assert (first, second) == (0.0, 0.01)
    assert isinstance(late, TimeoutError) and isinstance(later, TimeoutError)


def test_a_cancelled_wait_is_cancelled_and_no_time_out() -> None:
    async def main() -> None:
        deadlines = Deadlines(30.0)
        task = asyncio.ensure_future(deadlines.within(asyncio.sleep(30)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
