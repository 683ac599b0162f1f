"""Finding a Java, with small scripts in the place of `java`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.errors import JavaMissing
from tidings.java import MODULE, ask, find_java, read_modules


def a_java(home: Path, version: str = "17.0.1", *, module: bool = True, runs: bool = True) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    lines = [f"java.base@{version}", *([f"{MODULE}@{version}"] if module else [])]
    binary.write_text("#!/bin/sh\n" + ("\n".join(f"echo {line}" for line in lines) if runs else "exit 1") + "\n")
    binary.chmod(0o755)
    return home


def test_java_home_comes_before_path_and_the_usual_folders(tmp_path: Path) -> None:
    named, on_path = a_java(tmp_path / "named"), a_java(tmp_path / "on_path", "21")
    environ = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    assert find_java(environ, tmp_path).home == named
    assert find_java({"PATH": str(on_path / "bin")}, tmp_path / "none").version == 21


def test_an_unfit_java_home_is_passed_over(tmp_path: Path) -> None:
    cut_down, whole = a_java(tmp_path / "cut", module=False), a_java(tmp_path / "jvm" / "whole", "25")
    assert find_java({"JAVA_HOME": str(cut_down), "PATH": ""}, tmp_path / "jvm").home == whole


@pytest.mark.parametrize(
    ("version", "module", "said"), [("11.0.2", True, "Java 11"), ("21", False, f"without the module {MODULE}")]
)
def test_what_was_found_instead_is_said_with_what_to_do(tmp_path: Path, version: str, module: bool, said: str) -> None:
    home = a_java(tmp_path / "java", version, module=module)
    with pytest.raises(JavaMissing, match=said) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": ""}, tmp_path / "none")
    assert "apt-get install default-jre-headless" in str(caught.value)


def test_no_java_at_all_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing) as caught:
        find_java({"PATH": ""}, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_java_too_old_to_list_modules_is_java_8(tmp_path: Path) -> None:
    java = ask(a_java(tmp_path / "old", runs=False))
    assert java is not None
    assert not java.fits


def test_modules_are_read_from_the_listing() -> None:
    assert read_modules("java.base@17.0.15\njdk.incubator.vector@17.0.15\n") == (17, True)
    assert read_modules("java.base@25\njdk.incubator.vectors@25\n") == (25, False)
    assert read_modules("") == (0, False)
