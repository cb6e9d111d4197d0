"""The mutation operators: each drops or reverses one rule, or shifts a bound by one.

The library's operators on texts and arguments are not used: most of their mutants raise a TypeError
at once, and would hide the few that matter. Its operators on numbers, comparisons, ``not``,
``and``/``or``, ``break`` and ``case`` are used. This module adds operators that drop a condition, a
statement or one half of a conjunction.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import libcst
from mutmut.mutation import mutators

Operator = Callable[[Any], Iterable[libcst.CSTNode]]
Operators = Sequence[tuple[type[libcst.CSTNode], Operator]]

_KEPT = frozenset(
    {
        mutators.operator_number,
        mutators.operator_name,
        mutators.operator_remove_unary_ops,
        mutators.operator_keywords,
        mutators.operator_swap_op,
        mutators.operator_match,
        mutators.operator_if_exp,
    }
)


def _in_parentheses(node: libcst.BaseExpression) -> libcst.BaseExpression:
    return node.with_changes(lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()])


def force_condition(node: libcst.If) -> Iterable[libcst.If]:
    """Make an ``if`` always false, and always true; its condition is still evaluated."""
    for operator, value in ((libcst.And(), "False"), (libcst.Or(), "True")):
        forced = libcst.BooleanOperation(
            left=_in_parentheses(node.test), operator=operator, right=libcst.Name(value)
        )
        yield node.with_changes(test=forced)


def drop_operand(node: libcst.BooleanOperation) -> Iterable[libcst.BaseExpression]:
    """Drop one side of ``and`` and ``or``."""
    yield _in_parentheses(node.left)
    yield _in_parentheses(node.right)


def drop_call(node: libcst.Expr) -> Iterable[libcst.Pass]:
    """Drop a call whose result is not used."""
    if isinstance(node.value, libcst.Call):
        yield libcst.Pass()


def drop_store(node: libcst.Assign | libcst.AugAssign) -> Iterable[libcst.Pass]:
    """Drop an assignment to an attribute or an item, never one to a local name."""
    if isinstance(node, libcst.AugAssign):
        targets = [node.target]
    else:
        targets = [each.target for each in node.targets]
    if all(isinstance(target, libcst.Attribute | libcst.Subscript) for target in targets):
        yield libcst.Pass()


OWN: Operators = (
    (libcst.If, force_condition),
    (libcst.BooleanOperation, drop_operand),
    (libcst.Expr, drop_call),
    (libcst.Assign, drop_store),
    (libcst.AugAssign, drop_store),
)


def _code(node: libcst.CSTNode) -> str:
    return libcst.Module(body=[]).code_for_node(node)


def _share(operator: Operator, part: int, parts: int) -> Operator:
    def some(node: libcst.CSTNode) -> Iterable[libcst.CSTNode]:
        before = _code(node)
        for mutated in operator(node):
            text = f"{before}\0{_code(mutated)}"
            if zlib.crc32(text.encode()) % parts == part:
                yield mutated

    return some


def operators(part: int, parts: int) -> list[tuple[type[libcst.CSTNode], Operator]]:
    """Return the operators of one of ``parts`` shares; each mutant is in exactly one share.

    ``0 <= part < parts``. The share depends on the text of the mutated expression alone, so it
    stays when code around it moves.
    """
    kept = [(kind, operator) for kind, operator in mutators.mutation_operators if operator in _KEPT]
    return [(kind, _share(operator, part, parts)) for kind, operator in (*kept, *OWN)]
