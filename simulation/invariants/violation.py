"""The exception that every invariant raises."""

from __future__ import annotations


class Violation(BaseException):
    """A property does not hold; ``evidence`` shows it.

    Not an ``Exception``, so that no code under test can suppress it.
    """

    def __init__(self, name: str, message: str, /, **evidence: object) -> None:
        seen = " ".join(f"{key}={value}" for key, value in evidence.items())
        super().__init__(f"{name}: {message} [{seen}]")
        self.name = name
        self.evidence = evidence
