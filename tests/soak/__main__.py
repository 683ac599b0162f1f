"""`make soak`: the long form."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.soak.soak import run


def main() -> int:
    parser = argparse.ArgumentParser(description="Publish to a hub with good and bad endpoints, and see whether it stays flat.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two looks")
    parser.add_argument("--out", type=Path, default=Path("soak-report"), help="where the report and its picture go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidings-soak-") as folder:
        report = run(Path(folder), seconds=options.minutes * 60, every=options.every, say=lambda line: print(line, flush=True))
    print(f"{report.verdict}\nsee {report.write(options.out)}")
    return 1 if report.lost or report.grown else 0


if __name__ == "__main__":
    raise SystemExit(main())
