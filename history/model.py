"""The sequential model that histories are compared with: one resource, one operation at a time.

A resource is a topic with its id, partitions and configurations, or a broker's configurations. A
topic id that no response named is a variable (``?7`` for operation 7) until a read shows it. A
partition count left to the server is -1 until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from history.operation import Action, Operation, Outcome, Value

TOPIC_PREFIX = "topic:"
_EXISTS_ALREADY = "TOPIC_ALREADY_EXISTS"
_UNKNOWN_TOPIC = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"})
_TOO_FEW = "INVALID_PARTITIONS"
TELLING = frozenset({_EXISTS_ALREADY, _TOO_FEW}) | _UNKNOWN_TOPIC
"""Errors that reveal the state, and therefore count as reads."""


class State(NamedTuple):
    """The state of one resource at one moment. If ``exists`` is false, the rest is empty."""

    exists: bool
    topic_id: str = ""
    partitions: int = 0
    configs: tuple[tuple[str, str], ...] = ()
    """Sorted by name."""
    bound: frozenset[str] = frozenset()
    """Ids that variables were resolved to, also of deleted topics: an id is never reused."""

    def __str__(self) -> str:
        if not self.exists:
            return "no such topic"
        configs = ", ".join(f"{name}={value}" for name, value in self.configs) or "no configs"
        if not self.topic_id:
            return configs
        return f"topic {self.topic_id}, {self.partitions} partitions, {configs}"


class Model:
    """The model of one key in one history."""

    def __init__(self, key: str, operations: Iterable[Operation]) -> None:
        self.initial = State(exists=not key.startswith(TOPIC_PREFIX))
        """Topics do not exist initially; broker resources do."""
        self._given = frozenset(
            str(each.result["topic_id"])
            for each in operations
            if each.action is Action.CREATE and each.result.get("topic_id")
        )

    def step(self, state: State, operation: Operation) -> State | None:
        """Return the state after the operation took effect with the outcome it had.

        None if it cannot have had that outcome in ``state``. An unknown outcome is always
        possible, with or without effect.
        """
        if operation.outcome is Outcome.FAILED:
            return _refused(state, operation)
        if operation.action is Action.READ:
            return self._read(state, operation)
        if operation.action is Action.DELETE:
            after = self._delete(state, operation)
        else:
            after = _EFFECTS[operation.action](state, operation)
        if after is None and operation.outcome is Outcome.UNKNOWN:
            return state
        return after

    def _delete(self, state: State, operation: Operation) -> State | None:
        named = self._named(state, operation.arguments.get("topic_id")) if state.exists else None
        return State(exists=False, bound=named.bound) if named is not None else None

    def _read(self, state: State, operation: Operation) -> State | None:
        seen = operation.result
        if seen.get("exists", state.exists) is not state.exists:
            return None
        if not state.exists:
            return state
        named = self._named(state, seen.get("topic_id"))
        if named is None:
            return None
        partitions = seen.get("partitions")
        if partitions is not None and partitions != named.partitions:
            if named.partitions >= 0:
                return None
            named = named._replace(partitions=_whole(partitions))
        configs = dict(state.configs)
        for name, value in _mapping(seen.get("configs")).items():
            if configs.get(name) != value:
                return None
        return named

    def _named(self, state: State, topic_id: Value) -> State | None:
        """Return the state with this topic id (None: any), or None if it cannot have that id."""
        if topic_id is None or topic_id == state.topic_id:
            return state
        if not state.topic_id.startswith("?") or topic_id in self._given | state.bound:
            return None
        name = str(topic_id)
        return state._replace(topic_id=name, bound=state.bound | {name})


def _refused(state: State, operation: Operation) -> State | None:
    error = operation.error
    given_id = operation.arguments.get("topic_id")
    if error == _EXISTS_ALREADY:
        fits = state.exists
    elif error in _UNKNOWN_TOPIC:
        fits = not state.exists or (given_id is not None and state.topic_id != given_id)
    elif error == _TOO_FEW and operation.action is Action.GROW:
        fits = state.exists and not _can_grow(state, operation)
    else:
        fits = True
    return state if fits else None


def _create(state: State, operation: Operation) -> State | None:
    if state.exists:
        return None
    arguments = operation.arguments
    named = operation.result.get("topic_id")
    configs = _mapping(arguments.get("configs"))
    return State(
        exists=True,
        topic_id=str(named) if named else f"?{operation.number}",
        partitions=_whole(arguments.get("partitions")),
        configs=tuple(sorted((name, str(value)) for name, value in configs.items())),
        bound=state.bound,
    )


def _grow(state: State, operation: Operation) -> State | None:
    if not state.exists or not _can_grow(state, operation):
        return None
    return state._replace(partitions=_whole(operation.arguments.get("partitions")))


def _can_grow(state: State, operation: Operation) -> bool:
    return _whole(operation.arguments.get("partitions")) > state.partitions


def _alter(state: State, operation: Operation) -> State | None:
    if not state.exists:
        return None
    configs = dict(state.configs)
    changes = operation.arguments.get("changes")
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, list) and len(change) == 3:
            _change(configs, str(change[0]), str(change[1]), change[2])
    return state._replace(configs=tuple(sorted(configs.items())))


def _change(configs: dict[str, str], name: str, how: str, value: Value) -> None:
    """Apply one configuration change. Lists default to empty: histories use only such keys."""
    if how == "set":
        configs[name] = str(value)
        return
    if how == "delete":
        configs.pop(name, None)
        return
    present = configs[name].split(",") if configs.get(name) else []
    named = str(value).split(",") if value else []
    if how == "append":
        items = list(dict.fromkeys((*present, *named)))
    else:
        items = [item for item in present if item not in named]
    if items != present:
        configs[name] = ",".join(items)


def _whole(value: Value) -> int:
    return value if isinstance(value, int) else -1


def _mapping(value: Value) -> Mapping[str, Value]:
    return value if isinstance(value, dict) else {}


_EFFECTS: Mapping[Action, Callable[[State, Operation], State | None]] = {
    Action.CREATE: _create,
    Action.GROW: _grow,
    Action.ALTER: _alter,
}
