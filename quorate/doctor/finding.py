"""What a check of the doctor found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CheckResult(Enum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, what was seen, and what to do about it."""

    check: str
    check_result: CheckResult
    seen: str
    remedy: str = ""
