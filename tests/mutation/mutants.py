"""Every mutant of a module: what it changes, where, and its code."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType

import libcst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from tests.mutation.operators import Operators

_UNCHANGED_CALLS = ("len", "isinstance")
"""Calls that depend on the argument's type only: a mutated argument raises at once."""
_LEFT_OUT = (libcst.Annotation, libcst.Parameters, libcst.Decorator)
_BODIES = (libcst.IndentedBlock, libcst.SimpleStatementSuite)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function."""

    path: Path
    function: str
    """``module.function`` or ``module.Class.method``."""
    lines: range
    """Lines of the changed statement: all of a simple one, the head of a compound one."""
    node: libcst.CSTNode
    mutated: libcst.CSTNode

    @property
    def module(self) -> str:
        """Return the name of the file without its suffix."""
        return self.path.stem

    def source(self) -> str:
        """Return the whole module with the change."""
        module, pieces, owners = _pieces(self.path)
        number = owners[self.node]
        statement = module.body[number].deep_replace(self.node, self.mutated)
        assert isinstance(statement, libcst.CSTNode)
        return "".join((*pieces[:number], module.code_for_node(statement), *pieces[number + 1 :]))

    def change(self) -> str:
        """Return the changed lines, ``- before`` and ``+ after``, without indentation."""
        before, after = self.path.read_text(encoding="utf-8"), self.source()
        return "\n".join(
            f"{line[0]} {line[1:].strip()}"
            for line in difflib.unified_diff(before.split("\n"), after.split("\n"), n=0)
            if line[0] in "-+" and line[:3] not in ("---", "+++")
        )


def mutants_of(path: Path, operators: Operators) -> list[Mutant]:
    """Return the mutants of a file, in the order of its text.

    Only bodies of functions are changed: no annotation, default or decorator, and nothing that
    runs once at import.
    """
    wrapper = _parsed(path)
    positions = wrapper.resolve(PositionProvider)
    parents = wrapper.resolve(ParentNodeProvider)
    found = []
    for node, function in _in_functions(wrapper.module, (), is_inside=False):
        for kind, operator in operators:
            if isinstance(node, kind):
                lines = _lines(node, parents, positions)
                name = f"{path.stem}.{'.'.join(function)}"
                found += [Mutant(path, name, lines, node, each) for each in operator(node)]
    return found


@cache
def _parsed(path: Path) -> MetadataWrapper:
    return MetadataWrapper(libcst.parse_module(path.read_text(encoding="utf-8")))


@cache
def _pieces(path: Path) -> tuple[libcst.Module, list[str], dict[libcst.CSTNode, int]]:
    """Return a module, its text by top-level statement, and which of them holds a node.

    Rebuilding one statement takes a tenth of the time of the whole module.
    """
    module = _parsed(path).module
    pieces = [module.code_for_node(each) for each in module.body]
    text = path.read_text(encoding="utf-8")
    head = text.index("".join(pieces)) if pieces else 0
    owners = {}
    for number, statement in enumerate(module.body):
        waiting: list[libcst.CSTNode] = [statement]
        while waiting:
            node = waiting.pop()
            owners[node] = number
            waiting += node.children
    if pieces:
        pieces[0] = text[:head] + pieces[0]
        pieces[-1] += text[len("".join(pieces)) :]
    return module, pieces, owners


def _in_functions(
    node: libcst.CSTNode, names: tuple[str, ...], *, is_inside: bool
) -> Iterator[tuple[libcst.CSTNode, tuple[str, ...]]]:
    """Yield every node that runs when a function is called, with the function's name."""
    if isinstance(node, _LEFT_OUT) or _is_unchanged_call(node):
        return
    if isinstance(node, libcst.FunctionDef | libcst.ClassDef) and not is_inside:
        names = (*names, node.name.value)
        is_inside = isinstance(node, libcst.FunctionDef)
    if is_inside and names:
        yield node, names
    for child in node.children:
        yield from _in_functions(child, names, is_inside=is_inside)


def _is_unchanged_call(node: libcst.CSTNode) -> bool:
    return (
        isinstance(node, libcst.Call)
        and isinstance(node.func, libcst.Name)
        and node.func.value in _UNCHANGED_CALLS
    )


def _lines(node: libcst.CSTNode, parents: object, positions: object) -> range:
    """Return the lines of the statement that contains a node."""
    at: libcst.CSTNode = node
    while not isinstance(at, libcst.BaseStatement):
        at = parents[at]  # type: ignore[index]
    where = positions[at]  # type: ignore[index]
    last = where.end.line
    for child in at.children:
        if isinstance(child, _BODIES):
            last = positions[child].start.line - 1  # type: ignore[index]
            break
    return range(where.start.line, max(where.start.line, last) + 1)


def replaced_code(mutant: Mutant) -> dict[tuple[str, int], CodeType]:
    """Return the new code of every function of the module, by its old name and first line."""
    before = compile(mutant.path.read_text(encoding="utf-8"), str(mutant.path), "exec")
    after = compile(mutant.source(), str(mutant.path), "exec")
    return dict(_pairs(before, after))


def _pairs(before: CodeType, after: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    old = [each for each in before.co_consts if isinstance(each, CodeType)]
    new = [each for each in after.co_consts if isinstance(each, CodeType)]
    if [each.co_name for each in old] != [each.co_name for each in new]:
        # The change dropped a comprehension or a lambda: their function as a whole is replaced.
        return
    for one, other in zip(old, new, strict=True):
        yield (one.co_qualname, one.co_firstlineno), other
        yield from _pairs(one, other)


def counted(mutants: list[Mutant]) -> Counter[str]:
    """Return the number of mutants of each module."""
    return Counter(each.module for each in mutants)
