"""`make bench`: every figure in one table. Machines are noisy: trust the ratios, which are made within one run."""

from __future__ import annotations

import argparse
import importlib
import sys

from bench.figures import Figure, table

GROUPS = {
    "log": "the embedded log beside raw SQLite",
    "publish": "publishing over HTTP, with and without the log",
    "doors": "publishing through each door beside the native one; nested VNG filters beside equality",
    "filters": "routing one batch of events in memory",
    "avro": "Avro payloads: routing, checks, conversions",
    "routing": "routing a backlog on Spark",
    "delivery": "pushing to a fast sink, beside the bare client",
    "feeds": "serving feeds, beside a raw read of the log",
    "feeds_client": "reading a canned feed, beside a bare loop",
    "arrival": "a whole hub: latency, silence, memory, idling (about ten minutes)",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Tidings; prints one table.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"some of: {', '.join(GROUPS)} (all when none is named)")
    chosen = parser.parse_args().groups or list(GROUPS)
    unknown = [group for group in chosen if group not in GROUPS]
    if unknown:
        parser.error(f"unknown group {unknown[0]}; one of: {', '.join(GROUPS)}")
    figures: list[Figure] = []
    try:
        for group in chosen:
            print(f"measuring {group}: {GROUPS[group]} …", file=sys.stderr, flush=True)
            figures += importlib.import_module(f"bench.{group}").figures()
    finally:
        # What was measured before something broke is still worth reading.
        print(table(figures), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
