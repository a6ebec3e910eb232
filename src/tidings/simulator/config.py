"""What is simulated: `config.toml` of `tidings simulate`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tidings.model.errors import UsageError
from tidings.network.payload_cache import Rules

OVERLAYS = ("can", "tree", "btree", "unicast")


@dataclass(frozen=True)
class Faults:
    """What goes wrong. Numbers of restarts and the like are per run, at random times."""

    loss: float = 0.0
    delay_ms: tuple[float, float] = (1.0, 1.0)
    """A message takes between so many and so many milliseconds; later ones may overtake it."""
    restarts: int = 0
    partitions: int = 0
    evictions: int = 0
    splits: int = 0
    merges: int = 0


@dataclass(frozen=True)
class Config:
    overlay: str = "can"
    brokers: int = 64
    nodes: int = 2_000
    cache_bytes: int = 0
    """Repository of a broker; 0: no caching at all."""
    plain_brokers: float = 0.0
    """Share of brokers that do not cache."""
    faults: Faults | None = None
    """None: nothing goes wrong, and a message takes a millisecond for each link of the network below."""
    rules: Rules = field(default_factory=Rules)


def read_config(path: Path) -> Config:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the config {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the config {path} is not UTF-8 text") from None
    try:
        return config_of(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the config {path} is not TOML: {error}") from None
    except UsageError as error:
        raise UsageError(f"the config {path}: {error}") from None


def config_of(given: dict[str, Any]) -> Config:
    """A config from the tables of its file."""
    faults, rules = given.get("faults"), given.get("rules", {})
    if not isinstance(faults, dict | None) or not isinstance(rules, dict):
        raise UsageError("[faults] and [rules] are tables")
    _check_names(given, (*(entry.name for entry in fields(Config)),), "")
    _check_names(rules, (*(entry.name for entry in fields(Rules)),), "rules.")
    for name, value in rules.items():
        if not isinstance(value, bool):
            raise UsageError(f"rules.{name} is true or false, not {value!r}")
    brokers = _whole(given, "brokers", 64, 1, 100_000)
    nodes = _whole(given, "nodes", 2_000, 1, 10_000_000)
    if nodes < brokers:
        raise UsageError(f"nodes = {nodes} are fewer than brokers = {brokers}: every broker is at a node of its own")
    overlay = given.get("overlay", "can")
    if overlay not in OVERLAYS:
        raise UsageError(f"overlay is one of {', '.join(OVERLAYS)}, not {overlay!r}")
    return Config(
        overlay,
        brokers,
        nodes,
        _whole(given, "cache_bytes", 0, 0, 2**62),
        _number(given, "plain_brokers", 0.0, 1.0),
        None if faults is None else _faults(faults),
        Rules(**rules),
    )


def _faults(given: dict[str, Any]) -> Faults:
    _check_names(given, (*(entry.name for entry in fields(Faults)),), "faults.")
    delay = given.get("delay_ms", [1.0, 1.0])
    is_range = isinstance(delay, list) and len(delay) == 2 and all(_is_number(end) for end in delay)
    if not is_range or not 0 <= delay[0] <= delay[1] <= 60_000:
        raise UsageError(f"faults.delay_ms is [least, most] in milliseconds, at most 60000, not {delay!r}")
    counts = {name: _whole(given, name, 0, 0, 1_000_000, "faults.") for name in _COUNTED}
    return Faults(_number(given, "loss", 0.0, 0.9, "faults."), (float(delay[0]), float(delay[1])), **counts)


_COUNTED = ("restarts", "partitions", "evictions", "splits", "merges")


def _check_names(given: dict[str, Any], known: tuple[str, ...], prefix: str) -> None:
    for name in given:
        if name not in known:
            raise UsageError(f"unknown setting {prefix}{name}; there are: {', '.join(known)}")


def _whole(given: dict[str, Any], name: str, default: int, least: int, most: int, prefix: str = "") -> int:
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"{prefix}{name} is a whole number from {least} to {most}, not {value!r}")
    return value


def _number(given: dict[str, Any], name: str, default: float, most: float, prefix: str = "") -> float:
    value = given.get(name, default)
    if not _is_number(value) or not 0 <= value <= most:
        raise UsageError(f"{prefix}{name} is a number from 0 to {most:g}, not {value!r}")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
