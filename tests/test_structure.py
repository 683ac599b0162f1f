"""The rules that keep the code livable, held by reading the source. The import contracts in pyproject.toml hold the rest."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import get_type_hints

import pytest

from tidings import config, errors

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tidings"
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))

HOMES = {
    "pyspark": (
        "pipeline/",
        "client/spark/",
    ),
    "py4j": ("pipeline/",),
    "pyarrow": (
        "pipeline/",
        "client/spark/",
    ),
    "numpy": ("filters/router.py", "filters/routing/", "pipeline/route.py"),
    "sqlite3": (
        "sqlite/",
        "log/sqlite/",
        "lanes/sqlite/",
        "delivery/push/sqlite/",
        "delivery/feeds/sqlite_cursor_sets.py",
        "backup/sqlite.py",
        "backup/renewal.py",
        "client/feeds/sqlite.py",
        "doctor/sqlite.py",
        "serve/sqlite_files.py",
        "ingest/claims.py",
    ),
    "sqlalchemy": ("registry/store/", "registry/migrations/"),
    "alembic": ("registry/migrations/",),
    "fastapi": ("doors/",),
    "starlette": ("doors/",),
    "pydantic": ("doors/",),
    "uvicorn": ("app.py", "server/http_protocol.py"),
    "uvloop": ("serve/part_commands.py",),
    "httptools": ("server/http_protocol.py", "delivery/push/egress/connection.py"),
    "ada_url": ("delivery/push/egress/urls.py",),
    "re2": ("filters/text_patterns.py",),
    "regex": ("filters/backtracking_regex.py",),
    "jsonschema_rs": ("events/schema.py",),
    "fastavro": ("events/avro/decoding.py",),
    "httpx": ("client/feeds/httpx.py",),
    "jwt": ("access/jwts.py", "access/gateway_tokens.py", "client/horizon.py"),
    "cryptography": ("access/", "delivery/push/request/signatures.py", "client/webhooks.py"),
    "prometheus_client": ("observe/metrics.py",),
    "typer": ("cli/",),
    "rich": ("cli/",),
    "yaml": ("yaml12.py",),
}
"""Where a technology may be imported: its own files, so that exchanging it means changing them and nothing else."""

FREE = {"msgspec", "tidings"}
"""What everybody may import."""

STATUS_CODES = (
    "doors/",
    "problems.py",
    "server/",
    "delivery/push/",
    "client/http.py",
    "client/feeds/answers.py",
    "client/feeds/connection.py",
    "cli/receiver.py",
)
"""Where HTTP status codes may appear: the doors, the one table, the wire itself, and what judges or gives answers of others."""

FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "managers", "base", "misc", "core", "types"}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((SOURCE / module).read_text("utf-8"))


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(module)))


@cache
def imported(module: str) -> tuple[str, ...]:
    return tuple(imports(module))


def imports(module: str) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("module", MODULES)
def test_a_technology_is_imported_only_in_its_own_files(module: str) -> None:
    strays = {name for name in imported(module) if name in HOMES and not module.startswith(HOMES[name])}
    assert not strays, f"{module} imports {strays}; their homes are {[HOMES[name] for name in strays]}"


def test_every_technology_has_a_home() -> None:
    import sys

    known = set(sys.stdlib_module_names) | FREE | HOMES.keys() | {"pydantic_core"}
    assert not {(module, name) for module in MODULES for name in imported(module) if name not in known}


def test_every_dependency_is_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.split(r"[<>=~!\[; ]", one)[0].lower().replace("_", "-") for one in project["dependencies"]}
    imported_as = {"google-re2": "re2", "pyjwt": "jwt", "pyyaml": "yaml"}
    # Spark wants pandas for Arrow and JWTs want cryptography for their signatures, though nobody here imports them.
    needed_by_others = {"pandas", "cryptography"}
    used = {name for module in MODULES for name in imported(module)}
    assert not {one for one in names - needed_by_others if imported_as.get(one, one.replace("-", "_")) not in used}


def status_codes(module: str) -> Iterator[str]:
    """Places where a number from 100 to 599 meets something called status, or where the standard names are imported."""
    for node in nodes(module):
        match node:
            case ast.ImportFrom(module="http", names=names) if any(alias.name == "HTTPStatus" for alias in names):
                yield "HTTPStatus"
            case ast.Compare(left=left, comparators=others) if any(map(_is_status, [left, *others])):
                yield from (ast.unparse(node) for one in [left, *others] if _is_code(one))
            case ast.keyword(arg=str(name), value=value) if "status" in name and _is_code(value):
                yield f"{name}={ast.unparse(value)}"
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if "status" in name.lower() and _is_code(value):
                yield ast.unparse(node)


def _is_status(node: ast.expr) -> bool:
    return "status" in ast.unparse(node).lower()


def _is_code(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and 100 <= node.value <= 599


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith(STATUS_CODES)])
def test_http_status_codes_appear_only_at_the_edges(module: str) -> None:
    assert not list(status_codes(module))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is_for_and_has_one_idea(module: str) -> None:
    text = (SOURCE / module).read_text("utf-8")
    described = ast.get_docstring(tree(module)) or ""
    assert described and not described.startswith("To be described"), f"{module} has no docstring"
    assert len(text.splitlines()) <= 500, f"{module} is too long for one idea"
    assert not FORBIDDEN_NAMES & set(Path(module).with_suffix("").parts), f"{module} needs a name that says its idea"


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    assert list(drawn(errors.__doc__ or "")) == list(derived(errors.TidingsError))


def drawn(docstring: str) -> Iterator[tuple[int, str]]:
    """Depth and name of every error in the drawing."""
    for line in docstring.splitlines():
        found = re.match(r"^((?:[│ ]   )*(?:[├└]── )?)([A-Z][A-Za-z]+)(?:\s{2,}|$)", line)
        if found:
            yield len(found[1]) // 4, found[2]


def derived(kind: type[errors.TidingsError], depth: int = 0) -> Iterator[tuple[int, str]]:
    yield depth, kind.__name__
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from derived(child, depth + 1)


def test_every_error_has_a_code_of_its_own_and_lives_in_the_tree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TidingsError)]
    assert len({kind.code for kind in kinds}) == len(kinds)
    strays = [
        (module, node.name)
        for module in MODULES
        for node in nodes(module)
        if module != "errors.py" and isinstance(node, ast.ClassDef) and any(_is_error(one) for one in node.bases)
    ]
    assert not strays, "errors of the hub are in errors.py"


def _is_error(base: ast.expr) -> bool:
    return isinstance(vars(errors).get(ast.unparse(base).split(".")[-1]), type)


def settings_in_file() -> Iterator[tuple[str, str]]:
    """Every setting of defaults.toml as `section.key`, and the comment above it."""
    section, comment = "", ""
    for line in (SOURCE / "defaults.toml").read_text("utf-8").splitlines():
        if found := re.match(r"\[(\w+)\]$", line):
            section = f"{found[1]}."
        elif line.startswith("#"):
            comment = f"{comment} {line.lstrip('# ')}".strip()
            continue
        elif found := re.match(r"(\w+) = ", line):
            yield f"{section}{found[1]}", comment
        comment = ""


def settings_in_code(kind: type, path: str = "") -> Iterator[str]:
    hints = get_type_hints(kind)
    for field in fields(kind):  # type: ignore[arg-type]
        if is_dataclass(hints[field.name]):
            yield from settings_in_code(hints[field.name], f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}"


def test_every_setting_has_a_field_and_every_field_a_default() -> None:
    assert sorted(name for name, _ in settings_in_file()) == sorted(settings_in_code(config.Settings))


@pytest.mark.parametrize(("name", "comment"), list(settings_in_file()))
def test_every_setting_is_told_in_a_sentence(name: str, comment: str) -> None:
    assert re.match(r"[A-Z].{10,}\.$", comment), f"{name}: {comment!r}"


def test_pinned_packages_name_no_index() -> None:
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    assert lines and all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+", line) for line in lines)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    }
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    assert not {re.split(r"[<>=~!\[; ]", one)[0].lower().replace("_", "-") for one in wanted} - pinned


def public_classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for module in MODULES:
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module)
    return found


def test_one_class_name_has_one_meaning() -> None:
    assert {name: homes for name, homes in public_classes().items() if len(homes) > 1} == {}


def protocols(module: str) -> Iterator[ast.ClassDef]:
    for node in tree(module).body:
        names = [ast.unparse(base).partition("[")[0] for base in node.bases] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ClassDef) and "Protocol" in names:
            yield node


@pytest.mark.parametrize("module", [module for module in MODULES if any(protocols(module))])
def test_a_port_has_seven_methods_at_most(module: str) -> None:
    for node in protocols(module):
        methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert len(methods) <= 7, f"{node.name} has {len(methods)}: cut it by need"


ADAPTERS = (
    *("log/", "lanes/", "sqlite/", "registry/store/", "registry/migrations/", "delivery/push/sqlite/"),
    *("delivery/feeds/sqlite_cursor_sets.py", "ingest/claims.py", "client/", "cli/feed.py"),
    *("adapters.py", "app.py", "serve/", "backup/", "doctor/", "cli/doctor.py"),
)
"""Adapters, what chooses them, and what handles their files. The client keeps cursors of its own in SQLite."""

OF_LANES = ("pipeline/", "delivery/", "doors/deliveries/", "doors/feeds/", "doors/sse/", "doors/native/delivery/")
"""Where lanes are written and read."""

ONE_PARTITION = re.compile(r"embedded|sqlite", re.IGNORECASE)
PACKED = re.compile(r"(?:^|_)(?:block|digest)s?(?:_|$)", re.IGNORECASE)
"""How the embedded lanes are kept is nobody else's business."""

HASHING = {"compare_digest", "digest_size", "digest"}
BLOCKED = {"delivery/push/egress/address_guard.py"}
"""Where addresses are blocked, which has nothing to do with lanes."""


def identifiers(module: str) -> Iterator[str]:
    """Every name in the code of a module, and what it imports."""
    for node in ast.walk(tree(module)):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
                yield word
            case ast.ImportFrom(module=origin, names=names):
                yield from (origin or "", *(alias.name for alias in names))
            case ast.Import(names=names):
                yield from (alias.name for alias in names)


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith(ADAPTERS)])
def test_only_adapters_know_what_the_embedded_hub_stands_on(module: str) -> None:
    assert not {word for word in identifiers(module) if ONE_PARTITION.search(word)}


@pytest.mark.parametrize("module", [one for one in MODULES if one.startswith(OF_LANES) and not one.startswith(ADAPTERS)])
def test_only_adapters_know_how_lanes_are_packed(module: str) -> None:
    assert module in BLOCKED or not {word for word in identifiers(module) if PACKED.search(word)} - HASHING


DOOR_NAMES = re.compile(r"horizon|hermes|vng|zeroeventhub", re.IGNORECASE)

STAGES = ("log/", "lanes/", "sqlite/", "ingest/", "pipeline/", "delivery/")
SHARED_BY_DOORS = ("doors/sse/", "doors/requests/", "doors/deliveries/", "doors/feed_state/")
CORE = (*STAGES, "access/", "server/", "observe/", "registry/", "events/", *SHARED_BY_DOORS, "doors/native/")
"""Where no door is known by its name, nor in what all doors share."""

DATA = {"delivery/push/policy/presets.py", "registry/delivery_options.py", "doors/all_doors.py", "doors/native/bodies/feed.py"}
"""Presets of delivery policies and versions of feeds are named after systems, as users write them; and the list of doors."""


def is_core(module: str) -> bool:
    return module not in DATA and (module.startswith(CORE) or re.fullmatch(r"doors/\w+\.py", module) is not None)


def words_of(module: str) -> Iterator[str]:
    """Every name and text of a module, docstrings and the option `retry_horizon` aside."""
    docstrings = {id(node.value) for node in ast.walk(tree(module)) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree(module)):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.alias(name=word):
                yield word
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
                yield word
            case ast.keyword(arg=str(word)) | ast.ImportFrom(module=str(word)):
                yield word
            case ast.Constant(value=str(word)) if id(node) not in docstrings:
                yield word


@pytest.mark.parametrize("module", [module for module in MODULES if is_core(module)])
def test_the_core_knows_no_door_by_name(module: str) -> None:
    assert not {word for word in words_of(module) if DOOR_NAMES.search(word.replace("retry_horizon", ""))}
