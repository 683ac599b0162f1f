"""`make faults`: the long form of kill and ledger."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.faults.ledger import run


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a publishing hub many times and count what was lost.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidings-faults-") as folder:
        report = run(
            Path(folder), kills=options.kills, events=options.events, seed=options.seed, say=lambda s: print(s, flush=True)
        )
    print("\n".join(report.lines()))
    return 1 if report.lost or report.lane_faults or report.wrongly_delivered or report.out_of_order or report.repeated else 0


if __name__ == "__main__":
    raise SystemExit(main())
