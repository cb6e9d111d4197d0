"""No change of the protos breaks a program that was built with the last release.

``tests/support/last_release.py`` says which one that is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from tests.support.last_release import file_at, last_release, names_below
from tests.support.proto_changes import breaking_changes, current_files

ROOT = Path(__file__).resolve().parents[2]
SERIALIZED = re.compile(r"AddSerializedFile\((b'.*')\)$", re.MULTILINE)
"""The descriptor of a file, in the module that is generated from it."""


def files_of(sources: list[str]) -> FileDescriptorSet:
    return FileDescriptorSet(
        file=[
            FileDescriptorProto.FromString(ast.literal_eval(found))
            for source in sources
            for found in SERIALIZED.findall(source)
        ]
    )


def released() -> FileDescriptorSet:
    """Return the protos of the last release."""
    commit = last_release()
    names = names_below(commit, "quorum/v1")
    return files_of([file_at(commit, name) for name in names if name.endswith("_pb2.py")])


def test_the_protos_break_no_program_of_the_last_release() -> None:
    before = released()
    assert "quorum/v1/raft.proto" in {each.name for each in before.file}
    assert breaking_changes(before, current_files()) == []


def test_descriptors_are_read_from_generated_modules() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "quorum" / "v1").glob("*_pb2.py")]
    by_name = {each.name: each for each in files_of(sources).file}
    current = {each.name: each for each in current_files().file}
    assert by_name.keys() == current.keys()
    assert breaking_changes(FileDescriptorSet(file=by_name.values()), current_files()) == []


def a_file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="a.proto", package="p")
    message = file.message_type.add(name="M")
    message.field.add(name="f", number=1, type=FieldDescriptorProto.TYPE_INT32, json_name="f")
    message.field.add(
        name="g", number=2, type=FieldDescriptorProto.TYPE_STRING, json_name="g", oneof_index=0
    )
    message.oneof_decl.add(name="o")
    message.reserved_range.add(start=5, end=7)
    message.reserved_name.append("old")
    message.nested_type.add(name="N").field.add(name="h", number=1)
    message.enum_type.add(name="K").value.add(name="K_ZERO", number=0)
    file.enum_type.add(name="E").value.add(name="E_ZERO", number=0)
    file.service.add(name="S").method.add(name="Call", input_type=".p.M", output_type=".p.M")
    return file


def m(file: FileDescriptorProto) -> DescriptorProto:
    return file.message_type[0]


BREAKING: dict[str, Callable[[FileDescriptorProto], object]] = {
    "a.proto: the file is gone": lambda file: setattr(file, "name", "b.proto"),
    "a.proto: package p became q": lambda file: setattr(file, "package", "q"),
    "a.proto: M: the message is gone": lambda file: file.ClearField("message_type"),
    "a.proto: M.N: the message is gone": lambda file: m(file).ClearField("nested_type"),
    "a.proto: M.N.h: field 1 is gone": lambda file: m(file).nested_type[0].ClearField("field"),
    "a.proto: M.f: field 1 is gone": lambda file: m(file).field.pop(0),
    "a.proto: M.f: name of field 1 was f, is x": lambda file: setattr(
        m(file).field[0], "name", "x"
    ),
    "a.proto: M.f: json_name of field 1 was f, is x": lambda file: setattr(
        m(file).field[0], "json_name", "x"
    ),
    "a.proto: M.f: type of field 1 was 5, is 3": lambda file: setattr(m(file).field[0], "type", 3),
    "a.proto: M.f: label of field 1 was 1, is 3": lambda file: setattr(
        m(file).field[0], "label", 3
    ),
    "a.proto: M.f: type_name of field 1 was , is .p.E": lambda file: setattr(
        m(file).field[0], "type_name", ".p.E"
    ),
    "a.proto: M.f: proto3_optional of field 1 was False, is True": lambda file: setattr(
        m(file).field[0], "proto3_optional", True
    ),
    "a.proto: M.g: was in oneof o, is in (none)": lambda file: (
        m(file).field[1].ClearField("oneof_index")
    ),
    "a.proto: M.f: was in oneof (none), is in o": lambda file: setattr(
        m(file).field[0], "oneof_index", 0
    ),
    "a.proto: M.o: the oneof is gone": lambda file: setattr(m(file).oneof_decl[0], "name", "x"),
    "a.proto: M: number 6 is no longer reserved": lambda file: setattr(
        m(file).reserved_range[0], "end", 6
    ),
    "a.proto: M: the name old is no longer reserved": lambda file: m(file).ClearField(
        "reserved_name"
    ),
    "a.proto: M.K: the enum is gone": lambda file: m(file).ClearField("enum_type"),
    "a.proto: E: the enum is gone": lambda file: file.ClearField("enum_type"),
    "a.proto: E: 0 was E_ZERO, is gone": lambda file: file.enum_type[0].ClearField("value"),
    "a.proto: E: 0 was E_ZERO, is E_NONE": lambda file: setattr(
        file.enum_type[0].value[0], "name", "E_NONE"
    ),
    "a.proto: S: the service is gone": lambda file: file.ClearField("service"),
    "a.proto: S.Call: the method is gone": lambda file: file.service[0].ClearField("method"),
    "a.proto: S.Call: input_type was .p.M, is .p.X": lambda file: setattr(
        file.service[0].method[0], "input_type", ".p.X"
    ),
    "a.proto: S.Call: output_type was .p.M, is .p.X": lambda file: setattr(
        file.service[0].method[0], "output_type", ".p.X"
    ),
    "a.proto: S.Call: client_streaming was False, is True": lambda file: setattr(
        file.service[0].method[0], "client_streaming", True
    ),
    "a.proto: S.Call: server_streaming was False, is True": lambda file: setattr(
        file.service[0].method[0], "server_streaming", True
    ),
}


@pytest.mark.parametrize("problem", BREAKING)
def test_each_rule_finds_its_change(problem: str) -> None:
    changed = a_file()
    BREAKING[problem](changed)
    found = breaking_changes(FileDescriptorSet(file=[a_file()]), FileDescriptorSet(file=[changed]))
    assert problem in found


def test_additions_break_nothing() -> None:
    changed = a_file()
    m(changed).field.add(name="new", number=3)
    m(changed).reserved_range.add(start=9, end=10)
    changed.message_type.add(name="New")
    changed.enum_type[0].value.add(name="E_ONE", number=1)
    changed.service[0].method.add(name="More")
    more = FileDescriptorProto(name="b.proto")
    current = FileDescriptorSet(file=[changed, more])
    assert breaking_changes(FileDescriptorSet(file=[a_file()]), current) == []
