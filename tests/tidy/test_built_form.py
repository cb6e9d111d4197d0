"""The check of built wheels and sdists sees what it is there for, and the list is in order."""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path

from bench.build_form import COMPILED as LOOKED_AT
from tests.gate.built_form import GROUP, ROOT, listed_modules, names_in, problems

TABLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["quorate"][
    "compiled"
]
LISTED = listed_modules()
SUFFIX = ".cpython-311-x86_64-linux-gnu.so"
COMPILED = [each + SUFFIX for each in (*LISTED, GROUP)]


def test_a_compiled_wheel_with_all_listed_modules_passes() -> None:
    assert problems("compiled", [*COMPILED, "quorate/entry.py"], LISTED) == []


def test_a_module_that_was_not_compiled_is_named() -> None:
    """It is what a wheel looks like if the build fell back to pure Python for it."""
    names = [each for each in COMPILED if not each.startswith("quorum/batch_decode.")]
    assert problems("compiled", names, LISTED) == ["quorum/batch_decode is not compiled"]


def test_a_pure_wheel_is_no_compiled_one() -> None:
    assert len(problems("compiled", ["quorum/batch_decode.py"], LISTED)) == len(LISTED) + 1


def test_an_extension_that_is_not_listed_is_named() -> None:
    names = [*COMPILED, "quorum/errors" + SUFFIX]
    assert problems("compiled", names, LISTED) == ["quorum/errors is compiled, and is not listed"]


def test_an_extension_or_generated_source_in_a_pure_archive_is_named(tmp_path: Path) -> None:
    archive = tmp_path / "quorate.whl"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("quorum/batch.py", "quorum/batch" + SUFFIX, "build/__native.c"):
            file.writestr(name, "")
    assert len(problems("pure", names_in(archive), LISTED)) == 2


def test_what_is_left_out_is_below_what_is_listed_and_has_a_reason() -> None:
    for path, reason in TABLE["left-out"].items():
        assert any(path.startswith(f"{each}/") for each in TABLE["paths"]), path
        assert len(reason) > 20, path
        assert (ROOT / path).exists(), path
        assert not any(f"{each}.py" == path or each.startswith(f"{path}/") for each in LISTED)


def test_what_the_bench_looks_at_is_listed() -> None:
    looked_at = {each.__name__.replace(".", "/") for each in LOOKED_AT}
    assert looked_at <= set(LISTED)


def test_the_compiled_form_is_tested_by_itself_and_in_processes() -> None:
    """Goal: what CI runs on it. Method: the Makefile's list, without its functions."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = text.partition("OF_COMPILED := ")[2].partition("\n\n")[0].replace("\\\n", " ")
    paths = [
        prefix + each
        for prefix, names in re.findall(r"\$\(addprefix (\S+),([^)]*)\)", listed)
        for each in names.split()
    ]
    assert [each for each in paths if not (ROOT / each).exists()] == []
    assert {f"tests/unit/{each}" for each in ("services", "transport", "replica")} <= {*paths}
    # They read directories with compiled modules: what those raise differs from the pure form.
    assert {f"tests/unit/{each}" for each in ("cli", "client", "backup", "recovery")} <= {*paths}
    assert any(each.startswith("tests/integration/") for each in paths)
