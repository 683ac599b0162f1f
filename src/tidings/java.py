"""Java: Spark needs version 17 or newer with the module jdk.incubator.vector, which cut-down runtimes lack.

JAVA_HOME is looked at first, then PATH, then the folders where Debian puts it. `python -m tidings.java` prints the home found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidings.errors import JavaMissing

OLDEST = 17
MODULE = "jdk.incubator.vector"
WHAT_TO_DO = "install one, on Debian with `apt-get install default-jre-headless`, or set JAVA_HOME to one"
DEBIAN = Path("/usr/lib/jvm")


@dataclass(frozen=True, slots=True)
class Java:
    """One Java that was asked what it is."""

    home: Path
    version: int
    has_module: bool

    @property
    def fits(self) -> bool:
        return self.version >= OLDEST and self.has_module

    def __str__(self) -> str:
        lack = "" if self.has_module else f" without the module {MODULE}"
        return f"Java {self.version} at {self.home}{lack}"


def find_java(environ: Mapping[str, str] = os.environ, folders: Path = DEBIAN) -> Java:
    """The first Java that Spark can run on. Raises JavaMissing with what was found instead and what to do."""
    unfit = []
    for home in dict.fromkeys(_homes(environ, folders)):
        java = ask(home)
        if java is None:
            continue
        if java.fits:
            return java
        unfit.append(str(java))
    found = f" (found only {', '.join(unfit)})" if unfit else ""
    raise JavaMissing(f"Spark needs Java {OLDEST} or newer with the module {MODULE}{found}: {WHAT_TO_DO}")


def ask(home: Path) -> Java | None:
    """What the Java at `home` is; None when there is none or it does not run."""
    try:
        answer = subprocess.run([home / "bin" / "java", "--list-modules"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return Java(home, *read_modules(answer.stdout)) if answer.returncode == 0 else Java(home, 8, False)


def read_modules(listing: str) -> tuple[int, bool]:
    """Version and whether the module is there, from the lines of `java --list-modules` (java.base@17.0.15)."""
    base = re.search(r"^java\.base@(\d+)", listing, re.MULTILINE)
    return int(base[1]) if base else 0, re.search(rf"^{re.escape(MODULE)}(@|$)", listing, re.MULTILINE) is not None


def _homes(environ: Mapping[str, str], folders: Path) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"])
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for binary in sorted(folders.glob("*/bin/java"), reverse=True):
        yield binary.resolve().parent.parent


if __name__ == "__main__":
    try:
        print(find_java().home)
    except JavaMissing as missing:
        print(missing, file=sys.stderr)
        sys.exit(1)
