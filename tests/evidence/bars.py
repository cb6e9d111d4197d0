"""The bars of the lanes: what a lane's results must come to, and proof that each bar can be missed.

A judge is a function that decides from results whether a lane has passed. Its bars are its
conditions. ``unproven`` takes the conditions out of a judge one by one, and shifts its bounds by
one: made-up results must then come out another way than they should. So a condition that no case
needs is found, also one that was added later.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType

Passes = Callable[[], bool]
"""Puts made-up results before the judges; whether the lane would pass."""
_SHIFTED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bars:
    """What decides about one lane, or about a family of lanes."""

    lanes: tuple[str, ...]
    """Names; with a ``-`` at the end the start of several."""
    evaluates: tuple[Callable[..., object], ...]
    """Functions of modules or classes; they refer to no local variable of others."""
    kept: Mapping[str, Passes]
    """Results just within the bars, by what is special about them."""
    missed: Mapping[str, Passes]
    """Results that miss one bar each, by its name."""

    def applies_to(self, lane: str) -> bool:
        """Whether they are this lane's."""
        return any(
            lane == each or (each[-1] == "-" and lane.startswith(each)) for each in self.lanes
        )

    def wrong(self) -> list[str]:
        """Return the cases that do not come out as they should."""
        found = [
            f"{name}: refused, although kept" for name, passes in self.kept.items() if not passes()
        ]
        found += [
            f"{name}: missed, and nothing noticed"
            for name, passes in self.missed.items()
            if passes()
        ]
        return found

    def unproven(self) -> list[str]:
        """Return the changes of a judge that no case notices: conditions without a case."""
        found = []
        for evaluate in self.evaluates:
            assert isinstance(evaluate, FunctionType), evaluate
            original = evaluate.__code__
            for change, code in mutated(evaluate):
                try:
                    evaluate.__code__ = code
                    if not self._notices():
                        found.append(f"{evaluate.__qualname__}: {change}")
                finally:
                    evaluate.__code__ = original
        return found

    def _notices(self) -> bool:
        try:
            return bool(self.wrong())
        except Exception:
            # A judge that ends in an error passes nothing.
            return True


def raises(error: type[Exception], call: Callable[[], object]) -> bool:
    """Return whether a call that must not raises this."""
    try:
        call()
    except error:
        return True
    return False


def mutated(evaluate: FunctionType) -> Iterator[tuple[str, CodeType]]:
    """Yield each change of a judge, and its code with that change alone."""
    source = textwrap.dedent(inspect.getsource(evaluate))
    for number in range(len(list(_changes(ast.parse(source))))):
        tree = ast.parse(source)
        what, apply = list(_changes(tree))[number]
        apply()
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.decorator_list = []
        names: dict[str, FunctionType] = {}
        code = compile(ast.fix_missing_locations(tree), evaluate.__code__.co_filename, "exec")
        exec(code, evaluate.__globals__, names)
        yield what, names[definition.name].__code__


def _changes(tree: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Conditions that never hold, ``and`` and ``or`` without one part, bounds shifted by one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp):
            yield f"{ast.unparse(node.test)} never holds", _never(node)
        elif isinstance(node, ast.comprehension):
            for place, part in enumerate(node.ifs):
                yield f"without if {ast.unparse(part)}", _dropped(node.ifs, place)
        elif isinstance(node, ast.BoolOp):
            for place, part in enumerate(node.values):
                yield f"{ast.unparse(node)} without {ast.unparse(part)}", _neutral(node, place)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SHIFTED:
            yield f"{ast.unparse(node)} with its bound shifted", _shifted(node)


def _never(node: ast.If | ast.IfExp) -> Callable[[], None]:
    return lambda: setattr(node, "test", ast.Constant(False))


def _dropped(parts: list[ast.expr], place: int) -> Callable[[], None]:
    return lambda: parts.__delitem__(place)


def _neutral(node: ast.BoolOp, place: int) -> Callable[[], None]:
    value = ast.Constant(isinstance(node.op, ast.And))
    return lambda: node.values.__setitem__(place, value)


def _shifted(node: ast.Compare) -> Callable[[], None]:
    return lambda: node.ops.__setitem__(0, _SHIFTED[type(node.ops[0])]())
