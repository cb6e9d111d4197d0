"""Histories written by hand, one call per operation."""

from __future__ import annotations

from history.check import Report, check
from history.history import Delivery, History, LogBatch, LogGap
from history.operation import Action, Level, Operation, Outcome, Value

T = "topic:t"
B = "broker:"


class Script:
    """Collects operations; each takes its interval as ``(call, end)``."""

    def __init__(self) -> None:
        self.history = History(unit="ms")

    def add(self, client: str, key: str, action: Action, span: tuple[int, int | None], **more):
        operation = Operation(
            number=len(self.history.operations),
            client=client,
            key=key,
            action=action,
            call=span[0],
            end=span[1],
            **{"outcome": Outcome.OK, **more},
        )
        self.history.operations.append(operation)
        return operation

    def set(self, client: str, value: str, span, *, name: str = "a", key: str = B, **more):
        changes: list[Value] = [[name, "set", value]]
        return self.add(client, key, Action.ALTER, span, arguments={"changes": changes}, **more)

    def append(self, client: str, value: str, span, *, key: str = B, **more):
        changes: list[Value] = [["a", "append", value]]
        return self.add(client, key, Action.ALTER, span, arguments={"changes": changes}, **more)

    def create(self, client: str, span, topic_id: str = "", **more):
        result = {"topic_id": topic_id} if topic_id else {}
        arguments = more.pop("arguments", {"partitions": 1})
        return self.add(client, T, Action.CREATE, span, arguments=arguments, result=result, **more)

    def delete(self, client: str, span, **more):
        return self.add(client, T, Action.DELETE, span, **more)

    def grow(self, client: str, count: int, span, **more):
        arguments: dict[str, Value] = {"partitions": count}
        return self.add(client, T, Action.GROW, span, arguments=arguments, **more)

    def get(self, client: str, value: str | None, span, *, name: str = "a", key: str = B, **more):
        result: dict[str, Value] = {"exists": True, "configs": {name: value}}
        return self.look(client, result, span, key=key, **more)

    def look(self, client: str, result, span, *, key: str = T, **more):
        more = {"level": Level.LINEARIZABLE, **more}
        return self.add(client, key, Action.READ, span, result=result, **more)

    def refused(self, client: str, action: Action, error: str, span, *, key: str = T, **more):
        return self.add(client, key, action, span, outcome=Outcome.FAILED, error=error, **more)

    def log(self, *ends: int, marks: dict[int, tuple[str, ...]] | None = None) -> None:
        base = 0
        for end in ends:
            found = (marks or {}).get(end, ())
            self.history.log.append(LogBatch(base, end, 1, f"d{base}", found))
            base = end

    def trimmed_log(
        self, *ranges: tuple[int, int], marks: dict[int, tuple[str, ...]] | None = None
    ) -> None:
        """A log read in parts, with a gap wherever one does not follow the last."""
        end_before = ranges[0][0]
        for base, end in ranges:
            if base != end_before:
                self.history.gaps.append(LogGap(end_before, base))
            found = (marks or {}).get(end, ())
            self.history.log.append(LogBatch(base, end, 1, f"d{base}", found))
            end_before = end

    def delivered(self, *items: tuple[str, int, int]) -> None:
        """Each is (what, base, end)."""
        for what, base, end in items:
            digest = f"d{base}" if what == "batch" else ""
            epoch = 1 if what == "batch" else -1
            self.history.deliveries.append(Delivery("w", what, end, base, epoch, digest))

    def check(self) -> Report:
        return check(self.history)


UNKNOWN = {"outcome": Outcome.UNKNOWN}
