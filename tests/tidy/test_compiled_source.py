"""The compiled modules keep clear of what mypyc compiles to something else, without a word.

See: ADR 64.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.gate.built_form import ROOT, listed_modules

Check: TypeAlias = Callable[[str], Iterator[str]]
STANDARD = {"dataclass", "final", "runtime_checkable", "unique"}
MAY_READ_CAUSES = {
    "quorum/errors.py": "cause_of itself",
    "quorate/cli/broker_agent.py": "the agent is not compiled",
    "quorate/cli/connection.py": "the client is not compiled",
    "quorate/client/open_commands.py": "the client is not compiled",
    "audit/source_endpoint.py": "the client is not compiled",
}
"""Files that read ``__cause__``, which an error of compiled code does not have."""


def decorated_values(source: str) -> Iterator[str]:
    """Yield the classes with a decorator of ours: mypyc compares their objects by identity."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            names = {ast.unparse(each).split("(")[0] for each in node.decorator_list}
            if names - STANDARD:
                yield node.name


def names_of_two_errors(source: str) -> Iterator[str]:
    """Yield the functions in which a name has errors of two types: mypyc takes the first only."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        types: dict[str, str] = {}
        for each in ast.walk(node):
            if isinstance(each, ast.ExceptHandler) and each.name and each.type:
                text = ast.unparse(each.type)
                if types.setdefault(each.name, text) != text:
                    yield f"{node.name}: {each.name}"


def read_beside_an_assignment(source: str) -> Iterator[str]:
    """Yield names that an expression reads and assigns: mypyc reads all of them at its end."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare | ast.BinOp | ast.Call | ast.Tuple | ast.List):
            continue
        for each in ast.walk(node):
            if isinstance(each, ast.NamedExpr):
                inside = {id(part) for part in ast.walk(each)}
                name = each.target.id
                for part in ast.walk(node):
                    is_read = isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
                    if is_read and part.id == name and id(part) not in inside:
                        yield f"line {each.lineno}: {name}"


def compiled(check: Check) -> list[str]:
    return [
        f"{name}: {found}"
        for name in listed_modules()
        for found in check((ROOT / f"{name}.py").read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(
    "check", [decorated_values, names_of_two_errors, read_beside_an_assignment]
)
def test_no_compiled_module_has_what_mypyc_compiles_to_something_else(check: Check) -> None:
    assert compiled(check) == []


def test_causes_of_errors_are_found_in_both_forms() -> None:
    """mypyc ignores the ``from`` of a ``raise``."""
    packages = sorted({name.split("/")[0] for name in listed_modules()} | {"audit", "quorate"})
    found = {
        str(file.relative_to(ROOT))
        for package in packages
        for file in (ROOT / package).rglob("*.py")
        if ".__cause__" in file.read_text(encoding="utf-8")
    }
    assert found == set(MAY_READ_CAUSES), "elsewhere: quorum.errors.cause_of"


def test_the_checks_see_it() -> None:
    two = """
def look():
    try:
        read()
    except KeyError as error:
        raise LookupError from error
    except OSError as error:
        raise LookupError from error
"""
    assert list(names_of_two_errors(two)) == ["look: error"]
    assert list(names_of_two_errors(two.replace("OSError", "KeyError"))) == []
    values = "@value\nclass One: ...\n@dataclass(slots=True)\nclass Two: ..."
    assert list(decorated_values(values)) == ["One"]
    assert list(read_beside_an_assignment("(old := now) != (now := look())")) == ["line 1: now"]
    assert list(read_beside_an_assignment("(now := look()) is None or now > 3")) == []
