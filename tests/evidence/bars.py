"""The bars of the lanes: the conditions that a lane's results must meet, and a test of each.

A check is a function that decides from results whether a lane has passed. Its bars are its
conditions. ``unproven`` removes the conditions of a check one by one, and shifts its bounds by
one. After each change a case must come out wrong. So a condition without a case is found, also
if it is added later.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType

Passes = Callable[[], bool]
"""Passes invented results to the checks; returns whether the lane would pass."""
_SHIFTED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bars:
    """The checks of one lane, or of a family of lanes."""

    lanes: tuple[str, ...]
    """Names of lanes. One that ends in ``-`` stands for all lanes that begin with it."""
    evaluates: tuple[Callable[..., object], ...]
    """The checks: functions of modules or classes, without free variables."""
    kept: Mapping[str, Passes]
    """Results that just meet the bars, by what is special about them."""
    missed: Mapping[str, Passes]
    """Results that miss one bar each, by its name."""

    def applies_to(self, lane: str) -> bool:
        """Return whether these are the bars of ``lane``."""
        return any(
            lane == each or (each[-1] == "-" and lane.startswith(each)) for each in self.lanes
        )

    def wrong(self) -> list[str]:
        """Return the cases that do not come out as they should."""
        found = [
            f"{name}: fails, but meets the bars"
            for name, passes in self.kept.items()
            if not passes()
        ]
        found += [
            f"{name}: passes, but misses a bar" for name, passes in self.missed.items() if passes()
        ]
        return found

    def unproven(self) -> list[str]:
        """Return the changes of a check that no case notices: conditions without a case."""
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
            # A check that ends in an error passes nothing.
            return True


def raises(error: type[Exception], call: Callable[[], object]) -> bool:
    """Return whether a call that must not raises this."""
    try:
        call()
    except error:
        return True
    return False


def mutated(evaluate: FunctionType) -> Iterator[tuple[str, CodeType]]:
    """Yield each change of a check, and its code with that change alone."""
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
