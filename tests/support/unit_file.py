"""The unit file of deploy/, read as an ini file."""

from __future__ import annotations

import configparser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "systemd" / "quorate.service"


class _Repeated(dict[str, str]):
    """Joins the values of a key that stands more than once, as systemd does for lists."""

    def __setitem__(self, key: str, value: str) -> None:
        if key in self and isinstance(value, list):
            value = [*self[key], *value]
        super().__setitem__(key, value)


def service_section() -> dict[str, str]:
    """``[Service]`` by key; repeated keys are lines of one value."""
    parser = configparser.RawConfigParser(strict=False, dict_type=_Repeated, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return dict(parser["Service"])
