"""A report of an unoptimised build says so on its first line."""

from __future__ import annotations

from types import ModuleType

import pytest

from bench import build_form
from bench.build_form import first_line, is_compiled, print_form, shortcomings
from bench.report import render

FIGURES = {"writes": [], "peers": {}}


def test_a_fast_build_has_nothing_to_say() -> None:
    assert shortcomings("'--enable-optimizations' '--with-lto'", compiled=True) == []
    assert first_line([]) == ""


def test_the_first_line_names_both_shortcomings() -> None:
    missing = shortcomings("'--enable-shared'", compiled=False)
    line = render({**FIGURES, "unoptimised": missing}).splitlines()[0]
    assert line.startswith("UNOPTIMISED BUILD")
    assert "--enable-optimizations" in line
    assert "not compiled by mypyc" in line


def test_each_shortcoming_counts_alone() -> None:
    assert len(shortcomings("'--enable-optimizations'", compiled=False)) == 1
    assert len(shortcomings("", compiled=True)) == 1
    assert len(shortcomings(None, compiled=True)) == 1, "unknown is not optimised"


def test_a_fast_build_begins_with_its_figures() -> None:
    assert "UNOPTIMISED" not in render({**FIGURES, "unoptimised": []})


def test_one_interpreted_module_makes_a_build_interpreted() -> None:
    compiled, interpreted = ModuleType("one"), ModuleType("two")
    compiled.__file__ = "/site-packages/one.cpython-311-x86_64-linux-gnu.so"
    interpreted.__file__ = "/site-packages/two.py"
    assert is_compiled((compiled,))
    assert not is_compiled((compiled, interpreted))


def test_a_single_program_names_its_form_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_form, "is_compiled", lambda: False)
    print_form()
    printed = capsys.readouterr()
    assert not printed.out
    assert "Quorate is not compiled by mypyc" in printed.err
