"""`python -m tests.hostile.child PARSER`: reads every hostile text with one parser. Says each name before it begins.

Whatever a text is, a parser gives a value or one of our own refusals. Anything else ends this process: an exception of other
kinds, a crash, more CPU time or more memory than the bounds.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import time

from tests.hostile.parsers import PARSERS
from tidings.errors import Rejected

SECONDS = 20
"""CPU time for one text: many times what is needed, even on a slow machine."""

MEMORY = 3 << 30


def main(name: str) -> None:
    parser = PARSERS[name]
    with contextlib.suppress(Rejected):
        parser.read("")  # what is imported late is not counted
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for text, make in parser.texts.items():
        print(f"{name}: {text}", flush=True)
        made = make()
        _allow(SECONDS)
        began = time.process_time()
        try:
            parser.read(made)
        except Rejected as error:
            assert len(str(error)) < 2_000, "the refusal repeats the text"
        print(f"    {time.process_time() - began:.3f} s", flush=True)


def _allow(seconds: int) -> None:
    """This much CPU time from now on; then SIGXCPU ends the process."""
    used = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main(sys.argv[1])
