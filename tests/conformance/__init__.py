"""Conformance with published test data, which lies beside the repository and is not part of it.

CONFORMANCE_DATA names another folder; without the data these tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

SHARED_DATA = Path(os.environ.get("CONFORMANCE_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
