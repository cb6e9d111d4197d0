"""The dataclasses that the client returns are what proto/results.py generates from the protos."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest

from quorate.client import results
from quorate.client.message_value import MessageValue
from tests.support.doc_client import generator

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "quorate" / "client" / "results"


GENERATED: dict[str, str] = generator().rendered()
CLASSES = [
    each
    for name in results.__all__
    if issubclass(each := getattr(results, name), MessageValue)
]  # fmt: skip


@pytest.mark.parametrize("name", GENERATED)
def test_a_module_is_fresh(name: str) -> None:
    assert (PLACE / name).read_text("utf-8") == GENERATED[name], "run: python proto/results.py"


def test_there_is_no_other_module() -> None:
    assert {path.name for path in PLACE.glob("*.py")} == GENERATED.keys()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_result_has_the_fields_of_its_message(cls: type[MessageValue]) -> None:
    wanted = [each.name for each in cls._type.DESCRIPTOR.fields]
    assert [each.name for each in dataclasses.fields(cls)] == wanted  # type: ignore[arg-type]
    assert not hasattr(cls(), "__dict__")
    assert cls.of(cls._type()) == cls()


def test_every_result_of_a_client_is_one() -> None:
    from quorate.client import Client

    of_methods = {
        str(inspect.signature(method).return_annotation)
        for name, method in inspect.getmembers(Client, inspect.isfunction)
        if not name.startswith("_")
    }
    messages = {each for each in of_methods if "Response" in each}
    assert len(messages) >= 15
    assert messages <= set(results.__all__)
