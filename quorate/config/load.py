"""Where settings come from: defaults, then one TOML file, the environment, and flags.

Later sources win. Every mistake of all sources is reported in one ``ConfigError``: unknown
keys with the nearest known one, values of the wrong type, and values that cannot work.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from quorate.config.server_config import ServerConfig
from quorate.config.settings import Setting, Value, settings
from quorum.errors import ConfigError

ENVIRONMENT_PREFIX = "QUORATE__"
DEFAULT_ORIGIN = "default"
_BITS_MAX = 256
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid configuration and, for every dotted key, which source set it."""

    config: ServerConfig
    values: dict[str, Value]
    origins: dict[str, str]


def load_config(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Iterable[str] = (),
) -> LoadedConfig:
    """Merge all sources and check the result.

    ``flags`` are ``section.key=value`` texts. Nothing is read but ``file``: the environment is
    handed in.

    Raises:
        ConfigError: With every problem of every source.
    """
    loaded, problems = merge(file, environment=environment, flags=flags)
    problems += loaded.config.problems()
    if problems:
        raise ConfigError(problems)
    return loaded


def merge(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Iterable[str] = (),
) -> tuple[LoadedConfig, list[str]]:
    """Like ``load_config`` without evaluating whether the values can work together.

    Returns:
        What could be read, and the problems found while reading.
    """
    table = settings()
    values: dict[str, Value] = {key: setting.default for key, setting in table.items()}
    origins = dict.fromkeys(table, DEFAULT_ORIGIN)
    problems: list[str] = []

    def take(key: str, raw: object, origin: str) -> None:
        setting = table.get(key)
        if setting is None:
            problems.append(f"{origin}: unknown setting {key}{_suggestion(key)}")
            return
        try:
            values[key] = _convert(setting, raw)
        except ValueError as error:
            problems.append(f"{origin}: {key} {error}")
        else:
            origins[key] = origin

    if file is not None:
        for key, raw in _read_file(file, problems).items():
            take(key, raw, f"file {file}")
    by_variable = {setting.environment_name: key for key, setting in table.items()}
    for name, raw in sorted((environment or {}).items()):
        if name.upper().startswith(ENVIRONMENT_PREFIX):
            fallback = name[len(ENVIRONMENT_PREFIX) :].lower().replace("__", ".")
            take(by_variable.get(name.upper(), fallback), raw, f"environment {name}")
    for flag in flags:
        key, equals, raw = flag.partition("=")
        if equals:
            take(key.strip(), raw.strip(), f"flag {key.strip()}")
        else:
            problems.append(f"flag {flag}: write it as section.key=value")
    config, wrong = _build(values)
    return LoadedConfig(config, values, origins), problems + wrong


def _read_file(file: Path, problems: list[str]) -> dict[str, object]:
    try:
        with file.open("rb") as stream:
            document = tomllib.load(stream)
    except OSError as error:
        problems.append(f"file {file}: cannot be read: {error.strerror}")
        return {}
    except (ValueError, RecursionError) as error:  # also numbers and nesting beyond all bounds
        problems.append(f"file {file}: not TOML: {error}")
        return {}
    return _flatten(document)


def _flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in document.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            flat.update(_flatten(value, f"{key}."))
        else:
            flat[key] = value
    return flat


def _suggestion(key: str) -> str:
    table = settings()
    for known, setting in table.items():
        if setting.declared.kafka == key:
            return f"; here it is called {known}"
    near = get_close_matches(key, table, n=1, cutoff=0.6)
    if not near:
        name = key.rpartition(".")[2]
        near = [known for known in table if known.rpartition(".")[2] == name][:1]
    return f"; did you mean {near[0]}?" if near else ""


def _convert(setting: Setting, raw: object) -> Value:
    """``raw`` from TOML or text as the setting's type. The error completes "<key> ..."."""
    kind = setting.kind
    if setting.is_optional and raw in (0, "", "0"):
        return None
    if kind is bool:
        return _to_bool(raw)
    if kind in (int, float):
        return _to_number(raw, whole=kind is int)
    if kind is tuple:
        if isinstance(raw, str):
            return tuple(part.strip() for part in raw.split(",") if part.strip())
        if isinstance(raw, list) and all(isinstance(part, str) for part in raw):
            return tuple(raw)
        raise ValueError(f"must be a list of texts, not {raw!r}")
    if not isinstance(raw, str):
        raise ValueError(f"must be a text, not {raw!r}")
    return Path(raw) if kind is Path else raw


def _to_bool(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in _TRUE | _FALSE:
        return raw.lower() in _TRUE
    raise ValueError(f"must be true or false, not {raw!r}")


def _to_number(raw: object, *, whole: bool) -> int | float:
    name = "a whole number" if whole else "a number"
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise ValueError(f"must be {name}, not {raw!r}")
    if whole and isinstance(raw, float):
        raise ValueError(f"must be {name}, not {raw!r}")
    try:
        number = int(raw) if whole else float(raw)
    except ValueError:
        raise ValueError(f"must be {name}, not {raw!r}") from None
    if isinstance(number, int) and number.bit_length() > _BITS_MAX:
        # Some of them have more digits than anybody can be shown.
        raise ValueError(f"must be a number of at most {_BITS_MAX} bits")
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"must be {name}, not {raw!r}")
    return number


def _build(values: Mapping[str, Value]) -> tuple[ServerConfig, list[str]]:
    sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    config, problems = ServerConfig(), []
    for section, arguments in sections.items():
        try:
            part = replace(getattr(config, section), **arguments)
        except ConfigError as error:  # a section that checks itself when it is made
            problems += [f"{section}.{problem}" for problem in error.problems]
        else:
            config = replace(config, **{section: part})
    return config, problems
