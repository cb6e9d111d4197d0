"""House rules of the wire contract, checked on the descriptors (after buf's STANDARD set).

The committed stubs hold the descriptors. That they are what the .proto files say is `make
proto-check`, part of `make verify`, which has the pinned compiler.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from quorum.errors import ErrorCode
from quorum.v1 import common_pb2

PROTO_ROOT = Path(__file__).parents[2] / "proto"
FILES = sorted(path.relative_to(PROTO_ROOT).as_posix() for path in PROTO_ROOT.rglob("*.proto"))


def committed(name: str) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor inside the committed stub."""
    module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    found = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(found)
    return found


def upper_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def problems(file: descriptor_pb2.FileDescriptorProto) -> list[str]:
    """Every broken rule of one file, as one line each."""
    found: list[str] = []
    if not re.fullmatch(r"[a-z][a-z0-9_.]*\.v[1-9][0-9]*", file.package):
        found.append(f"package {file.package} does not end in a version")
    if file.name.rpartition("/")[0] != file.package.replace(".", "/"):
        found.append(f"{file.name} is not in the directory of package {file.package}")
    if not re.fullmatch(r"[a-z0-9_]+\.proto", file.name.rpartition("/")[2]):
        found.append(f"{file.name} is not lower_snake_case")
    for enum in file.enum_type:
        found += enum_problems(enum)
    for message in file.message_type:
        found += message_problems(message)
    for service in file.service:
        found += service_problems(service)
    return found


def enum_problems(enum: descriptor_pb2.EnumDescriptorProto) -> list[str]:
    found: list[str] = []
    prefix = upper_snake(enum.name) + "_"
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", enum.name):
        found.append(f"enum {enum.name} is not PascalCase")
    for value in enum.value:
        if not re.fullmatch(prefix + r"[A-Z0-9_]+", value.name):
            found.append(f"{value.name} does not begin with {prefix}")
    # ErrorCode keeps Kafka's numbers, where 0 means that nothing went wrong.
    zero = "NONE" if enum.name == "ErrorCode" else "UNSPECIFIED"
    if enum.value[0].number != 0 or enum.value[0].name != prefix + zero:
        found.append(f"enum {enum.name} does not begin with {prefix}{zero} = 0")
    return found


def message_problems(message: descriptor_pb2.DescriptorProto) -> list[str]:
    found: list[str] = []
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", message.name):
        found.append(f"message {message.name} is not PascalCase")
    for field in [*message.field, *message.oneof_decl]:
        # A synthetic oneof of an optional field is named with an underscore in front.
        if not re.fullmatch(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*", field.name):
            found.append(f"{message.name}.{field.name} is not lower_snake_case")
    for nested in message.nested_type:
        if not nested.options.map_entry:
            found += message_problems(nested)
    for enum in message.enum_type:
        found += enum_problems(enum)
    return found


def service_problems(service: descriptor_pb2.ServiceDescriptorProto) -> list[str]:
    found: list[str] = []
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*Service", service.name):
        found.append(f"service {service.name} does not end in Service")
    for method in service.method:
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", method.name):
            found.append(f"rpc {method.name} is not PascalCase")
        for kind, name in (("Request", method.input_type), ("Response", method.output_type)):
            if name.rpartition(".")[2] != method.name + kind:
                found.append(f"rpc {method.name} uses {name}, not {method.name}{kind}")
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_contract_keeps_the_rules(name: str) -> None:
    """Versioned package, directory, names, prefixes, zero values, one pair of types per RPC."""
    assert problems(committed(name)) == []


def test_no_type_serves_two_rpcs() -> None:
    """Across all services, so that one RPC can grow without the other."""
    used = [
        type_name
        for name in FILES
        for service in committed(name).service
        for method in service.method
        for type_name in (method.input_type, method.output_type)
    ]
    assert sorted(used) == sorted(set(used))


def test_the_error_codes_are_those_of_the_code() -> None:
    """Same names, same numbers, none missing on either side."""
    assert dict(common_pb2.ErrorCode.items()) == {
        f"ERROR_CODE_{code.name}": int(code) for code in ErrorCode
    }


BAD = descriptor_pb2.FileDescriptorProto(name="quorum/Bad.proto", package="quorum.first")
_enum = BAD.enum_type.add(name="Colour")
_enum.value.add(name="RED", number=0)
_message = BAD.message_type.add(name="lower")
_message.field.add(name="camelCase", number=1)
_service = BAD.service.add(name="Thing")
_service.method.add(name="do", input_type=".q.DoRequest", output_type=".q.lower")


def test_each_rule_can_fail() -> None:
    """A file that breaks them all gets one line for each."""
    text = "\n".join(problems(BAD))
    for expected in (
        "does not end in a version",
        "is not in the directory",
        "quorum/Bad.proto is not lower_snake_case",
        "RED does not begin with COLOUR_",
        "COLOUR_UNSPECIFIED = 0",
        "message lower",
        "lower.camelCase",
        "does not end in Service",
        "rpc do is not PascalCase",
        "uses .q.lower, not doResponse",
    ):
        assert expected in text
