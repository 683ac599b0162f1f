"""`make faults`: the long form."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.faults import rounds
from tests.faults.ledger import Report

ABOUT = """\
Starts a hub, publishes without rest, disturbs it, and counts what was acknowledged against what arrived.

rounds:
%s
Every round ends well when nothing acknowledged is lost, nothing came twice without a reason or out of its order, and every
lane is at rest: no lag, nothing open, nothing due. Exit code 1 if any round found a fault, else 0; skipped rounds say why.
"""


def parser() -> argparse.ArgumentParser:
    about = "".join(f"  {name:8}{one.about}\n" for name, one in rounds.ROUNDS.items())
    made = argparse.ArgumentParser(
        prog="python -m tests.faults", description=ABOUT % about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("rounds", nargs="*", metavar="ROUND", help=f"which rounds: {', '.join(rounds.ROUNDS)}; all unless given")
    made.add_argument("--seed", type=int, help="draw the same plan as a former run did; by chance unless given, and printed")
    made.add_argument("--kills", type=int, default=50, help="kills of the round `kills` (default %(default)s)")
    made.add_argument(
        "--events", type=int, default=100_000, help="events that the round `kills` publishes at least (default %(default)s)"
    )
    made.add_argument("--times", type=int, default=5, help="how often the disk is filled, the power cut (default %(default)s)")
    made.add_argument("--folder", type=Path, help="keep data and logs of the hubs here; a temporary folder unless given")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    # Hubs are stopped and disks unmounted also when somebody ends the run.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    made = parser()
    options = made.parse_args(arguments)
    chosen = options.rounds or list(rounds.ROUNDS)
    for name in chosen:
        if name not in rounds.ROUNDS:
            made.error(f"there is no round {name}; there are {', '.join(rounds.ROUNDS)}")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}; the same plan again: python -m tests.faults {' '.join(chosen)} --seed {seed}", flush=True)
    amount = rounds.Amount(options.kills, options.events, options.times)
    with tempfile.TemporaryDirectory(prefix="tidings-faults-") as temporary:
        reports = [_run(name, seed, amount, options.folder or Path(temporary)) for name in chosen]
    for report in reports:
        print("\n".join(report.lines()))
    return 1 if any(report.faults for report in reports) else 0


def _run(name: str, seed: int, amount: rounds.Amount, folder: Path) -> Report:
    print(f"--- {name}", flush=True)
    report = rounds.run(name, seed, amount, folder / name, lambda line: print(line, flush=True))
    print("\n".join(report.lines()), flush=True)
    return report


if __name__ == "__main__":
    raise SystemExit(main())
