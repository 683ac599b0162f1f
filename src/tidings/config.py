"""Settings: defaults.toml, then a file, then TIDINGS_… variables, then flags. Read once, passed down in parts."""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NewType

from tidings.errors import Misconfigured, UnknownSetting

Seconds = NewType("Seconds", float)
Size = NewType("Size", int)

Raw = dict[str, Any]

_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES: Mapping[str, int] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    host: str
    port: int
    header_bytes: Size
    header_timeout: Seconds
    body_timeout: Seconds
    answer_timeout: Seconds
    keep_alive: Seconds
    max_connections: int
    max_connections_per_client: int
    public_url: str


@dataclass(frozen=True, slots=True)
class LogSettings:
    group_events: int
    queue_bytes: Size
    disk_reserve: Size
    wal_bytes: Size
    retention_sweep: Seconds


@dataclass(frozen=True, slots=True)
class TopicSettings:
    retention: Seconds
    max_event_bytes: Size
    duplicates: str


@dataclass(frozen=True, slots=True)
class IngestSettings:
    batch_events: int
    batch_bytes: Size
    reading_bytes: Size
    transport_headers: tuple[str, ...]
    webhook_origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    master: str
    driver_memory: str
    batch_events: int
    batch_bytes: Size
    catch_up_above: int
    catch_up_until: int

    def __post_init__(self) -> None:
        if not 0 <= self.catch_up_until < self.catch_up_above:
            raise Misconfigured(
                "routing would never be live, or never catch up",
                at="pipeline.catch_up_until",
                found=self.catch_up_until,
                expected=f"at least 0 and less than pipeline.catch_up_above ({self.catch_up_above})",
            )


@dataclass(frozen=True, slots=True)
class FeedSettings:
    long_polls: int
    cursor_sets: int
    cursor_set_expiry: Seconds


@dataclass(frozen=True, slots=True)
class RegexSettings:
    fallback: bool
    match_timeout: Seconds
    budget: Seconds


@dataclass(frozen=True, slots=True)
class PushSettings:
    inflight: int
    total_inflight: int
    open_items: int
    connect_timeout: Seconds
    attempt_timeout: Seconds
    tries: int
    retry_first: Seconds
    retry_max: Seconds
    retry_after_max: Seconds
    probe_interval: Seconds
    loop_window: Seconds
    loop_max: Seconds
    save_interval: Seconds
    records: Seconds
    records_bytes: Size
    dead_letter_events: bool
    allow: tuple[str, ...]
    allow_loopback: str
    ca_file: str
    public_dns_name: str
    callback_url: str


@dataclass(frozen=True, slots=True)
class SseSettings:
    max_streams: int
    idle: Seconds
    keep_alive: Seconds
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeliverSettings:
    workers: int


@dataclass(frozen=True, slots=True)
class TokenSettings:
    name: str
    sha256: str
    rights: tuple[str, ...]
    topics: tuple[str, ...] = ("*",)
    client_id: str = ""
    realm: str = ""


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    issuer: str
    jwks: str


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    scope: str
    right: str


@dataclass(frozen=True, slots=True)
class AccessSettings:
    mode: str
    tokens: tuple[TokenSettings, ...]
    jwks: str
    issuer: str
    audience: str
    rights_claim: str
    key: str = ""
    issuers: tuple[IssuerSettings, ...] = ()
    scopes: tuple[ScopeSettings, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayClientSettings:
    environment: str
    client: str


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    issuer: str
    client: str
    environment: str
    token_life: Seconds
    clients: tuple[GatewayClientSettings, ...] = ()

    def issuer_in(self, environment: str) -> str:
        """The issuer that tokens of an environment name."""
        return self.issuer.replace("{environment}", environment)

    def client_in(self, environment: str) -> str:
        """The client that tokens of an environment name."""
        return next((one.client for one in self.clients if one.environment == environment), self.client)


@dataclass(frozen=True, slots=True)
class HorizonSettings:
    port: int
    environment: str
    hub: str
    team: str
    internet_zones: tuple[str, ...]
    data_bytes: Size
    large_types: tuple[str, ...]
    jsonpath_types: tuple[str, ...]
    publish_timeout: Seconds
    dropped_headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CloudEventsSettings:
    port: int
    default_topic: str
    handshake: str


@dataclass(frozen=True, slots=True)
class HermesSettings:
    port: int
    cluster: str
    group_names: str
    publish_timeout: Seconds
    force_max_message_size: bool
    propagate_headers: bool
    propagated_headers: tuple[str, ...]
    topic_removal: bool
    time_zone: str
    retransmission_shape: str


@dataclass(frozen=True, slots=True)
class VngSettings:
    port: int
    json_content_type: bool
    undeclared_attributes: bool
    allow_dataref_only: bool
    source_must_be_urn: bool
    filters_object_ok: bool
    reject_old_filter_form: bool
    domain_write: bool
    handshake: str
    retry_horizon: Seconds
    permanent_statuses: tuple[int, ...]
    duplicates: str


@dataclass(frozen=True, slots=True)
class ObserveSettings:
    log_format: str
    log_level: str


@dataclass(frozen=True, slots=True)
class ServeSettings:
    restart_first: Seconds
    restart_max: Seconds
    restart_reset: Seconds
    stop_timeout: Seconds


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one hub. A value that exists is valid in itself."""

    data: Path
    server: ServerSettings
    log: LogSettings
    topics: TopicSettings
    ingest: IngestSettings
    pipeline: PipelineSettings
    feeds: FeedSettings
    regex: RegexSettings
    push: PushSettings
    sse: SseSettings
    deliver: DeliverSettings
    access: AccessSettings
    gateway: GatewaySettings
    horizon: HorizonSettings
    cloudevents: CloudEventsSettings
    hermes: HermesSettings
    vng: VngSettings
    observe: ObserveSettings
    serve: ServeSettings

    @property
    def hub_url(self) -> str:
        """Where others find the hub, without a slash at the end."""
        host = f"[{self.server.host}]" if ":" in self.server.host else self.server.host
        return self.server.public_url.rstrip("/") or f"http://{host}:{self.server.port}"


def load(file: Path | None = None, environ: Mapping[str, str] = os.environ, flags: Raw | None = None) -> Settings:
    """The settings of this start. Raises Misconfigured with the key, what was found and what would be right."""
    raw = tomllib.loads(resources.files("tidings").joinpath("defaults.toml").read_text("utf-8"))
    for layer, origin in _layers(file, environ, flags):
        _lay_over(raw, layer, origin)
    settings: Settings = _build(Settings, raw, "")
    return settings


def _layers(file: Path | None, environ: Mapping[str, str], flags: Raw | None) -> Iterator[tuple[Raw, str]]:
    if file is not None:
        yield _read(file), str(file)
    yield _from_environment(environ), "the environment"
    yield flags or {}, "the command line"


def _read(file: Path) -> Raw:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise Misconfigured("the settings file cannot be read", at=str(file), expected=error.strerror or "") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"the settings file is no TOML: {error}", at=str(file)) from error


def _from_environment(environ: Mapping[str, str]) -> Raw:
    """TIDINGS_SERVER_PORT=9000 → {"server": {"port": "9000"}}. The text is converted by the type of the setting.

    TIDINGS_URL and TIDINGS_TOKEN belong to the command line's client and are no settings of the hub.
    """
    raw: Raw = {}
    sections = {f.name for f in fields(Settings)}
    for name, value in environ.items():
        if not name.startswith("TIDINGS_") or name in ("TIDINGS_URL", "TIDINGS_TOKEN", "TIDINGS_CONFIG"):
            continue
        words = name.removeprefix("TIDINGS_").lower()
        section, _, key = words.partition("_")
        if not key:
            raw[section] = value
        elif section in sections:
            raw.setdefault(section, {})[key] = value
        else:
            raw[words] = value
    return raw


def _lay_over(base: Raw, layer: Raw, origin: str, path: str = "") -> None:
    for key, value in layer.items():
        place = f"{path}{key}"
        if key not in base:
            near = difflib.get_close_matches(key, list(base), n=1)
            hint = f"did you mean {path}{near[0]}?" if near else f"one of: {', '.join(sorted(base))}"
            raise UnknownSetting(f"unknown setting {place} in {origin}", expected=hint)
        if isinstance(base[key], dict):
            if not isinstance(value, dict):
                raise Misconfigured(f"the setting {place} in {origin} is a section", found=value, expected=f"[{place}]")
            _lay_over(base[key], value, origin, f"{place}.")
        else:
            base[key] = value


def _build(kind: Any, raw: Raw, path: str) -> Any:
    hints = typing.get_type_hints(kind, include_extras=True)
    known = {f.name for f in fields(kind)}
    for key in raw:
        if key not in known:
            raise UnknownSetting(f"unknown setting {path}{key}", expected=f"one of: {', '.join(sorted(known))}")
    try:
        return kind(**{name: _convert(hints[name], raw[name], f"{path}{name}") for name in raw})
    except TypeError as error:
        raise Misconfigured(f"a setting is missing: {error}", at=path.rstrip(".")) from error


def _convert(kind: Any, value: Any, at: str) -> Any:
    """The raw value as its declared type; texts from the environment are read the same way."""
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise Misconfigured("a section is expected", at=at, found=value)
        return _build(kind, value, f"{at}.")
    if typing.get_origin(kind) is tuple:
        items = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if not isinstance(items, list):
            raise Misconfigured("a list is expected", at=at, found=value)
        return tuple(_convert(typing.get_args(kind)[0], item, f"{at}[{n}]") for n, item in enumerate(items))
    converters: Mapping[Any, Any] = {Seconds: seconds, Size: size, int: _integer, bool: _boolean, str: _text, Path: Path}
    try:
        return converters[kind](value)
    except (ValueError, TypeError) as error:
        raise Misconfigured("the setting cannot be read", at=at, found=value, expected=_WANTED[kind]) from error


_WANTED: Mapping[Any, str] = {
    Seconds: 'a duration such as "30s", "10m", "7d"',
    Size: 'a size such as 65536, "64KiB", "32MiB"',
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    Path: "a path",
}


def _boolean(value: object) -> bool:
    words = {True: True, False: False, "true": True, "false": False}
    if isinstance(value, bool | str) and value in words:
        return words[value]
    raise ValueError(value)


def seconds(value: object) -> Seconds:
    """A duration: 30, "30s", "1.5h". Raises ValueError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Seconds(_finite(value))
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", str(value).strip())
    if not found:
        raise ValueError(value)
    return Seconds(_finite(float(found[1]) * _UNITS[found[2] or "s"]))


def size(value: object) -> Size:
    """A number of bytes: 65536, "64KiB", "1GiB". Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _within_64_bits(value)
    found = re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB)?", str(value).strip())
    if not found:
        raise ValueError(value)
    return _within_64_bits(int(found[1]) * _SIZES[found[2] or "B"])


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ValueError("the number is too large")
    return number


def _within_64_bits(value: int) -> Size:
    if abs(value) >= 1 << 63:
        raise ValueError("the number is too large")
    return Size(value)


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(value)
    return int(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value
