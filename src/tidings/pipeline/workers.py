"""Spark's Python workers, as processes: what they keep from task to task is not searched for garbage after every task.

PySpark collects garbage whenever a worker has finished a task. With all that is imported here that takes about 60 ms, and a
small batch has two tasks.
"""

from __future__ import annotations

import gc
from functools import cache


def settle() -> None:
    """Call it when something was made that stays for many tasks. What it replaced is collected first."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@cache
def settle_once() -> None:
    """The same for what was imported, in a worker that has nothing else to keep."""
    settle()
