"""The native codec: a record as the msgpack array ``[api key, version, field, ...]``.

Fields are identified by position, tagged or not; a nested structure is an array of its fields.
Values after the last known field are kept as the record's ``extra`` and written back.

The leader encodes and every replica decodes each record. So the code for each record version is
compiled once from the table of record types, as ``dataclasses`` does for ``__init__``. No outside
text reaches that source: it consists of our own field names and numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgpack

from quorum.errors import RecordCodecError, UnknownRecordError
from quorum.types import TaggedFields
from quorum.varint import encode_tagged_fields, read_tagged_fields
from statemachine.kept_packer import BUFFER_BYTES, KeptPacker
from statemachine.records import RECORD_TYPES, MetadataRecord, RecordType
from statemachine.records_schema import (
    INTEGER_RANGES,
    ArrayOf,
    Extra,
    FieldSpec,
    Kind,
    StructOf,
    WireStruct,
)

Encoder: TypeAlias = Callable[[MetadataRecord], bytes]
Decoder: TypeAlias = Callable[[tuple[Any, ...]], MetadataRecord]

EXT_TAGS = 75
"""msgpack extension type that carries a Kafka record's unknown tagged fields."""

EXTRA_DEPTH_MAX = 32
"""Deeper unknown values are refused: it must be possible to compare them, and to write them into
the next checkpoint, without reaching a recursion limit."""

_MALFORMED = (ValueError, TypeError, OverflowError)
"""Exceptions of msgpack for bytes that are not one well-formed, bounded object."""

_encoders: dict[tuple[int, int], Encoder] = {}
_decoders: dict[tuple[int, int], Decoder] = {}


def encode_native(record: MetadataRecord, version: int) -> bytes:
    """Encode a record as msgpack.

    Raises:
        UnknownRecordError: This type has no such version.
        RecordCodecError: A field has a value of the wrong type or out of range, or one that
            the version cannot carry.
    """
    encoder = _encoders.get((record.API_KEY, version))
    if encoder is None:
        encoder = _compile_encoder(_known(record.API_KEY, version), version)
        _encoders[record.API_KEY, version] = encoder
    try:
        return encoder(record)
    except _MALFORMED as error:
        raise RecordCodecError(f"{type(record).__name__}: {error}") from error


def decode_native(value: bytes) -> MetadataRecord:
    """Decode the bytes that ``encode_native`` made.

    Raises:
        UnknownRecordError: A type or version this release does not know.
        RecordCodecError: Anything else that is not one well-formed record.
    """
    try:
        values = msgpack.unpackb(value, use_list=False)
    except _MALFORMED as error:
        raise RecordCodecError(f"not a msgpack record: {error!r}") from error
    key = values[:2] if type(values) is tuple else ()
    if len(key) != 2 or type(key[0]) is not int or type(key[1]) is not int:
        raise RecordCodecError("a native record must begin with its api key and version")
    decoder = _decoders.get(key)
    if decoder is None:
        decoder = _decoders[key] = _compile_decoder(_known(*key), key[1])
    return decoder(values)


def _known(api_key: int, version: int) -> RecordType:
    record_type = RECORD_TYPES.get(api_key)
    if record_type is None:
        raise UnknownRecordError(f"unknown record type {api_key}", api_key=api_key, version=version)
    if version not in record_type.versions:
        raise UnknownRecordError(
            f"unknown version {version} of {record_type.name}, known are 0 to "
            f"{record_type.version_max}",
            api_key=api_key,
            version=version,
        )
    return record_type


_packer = KeptPacker(lambda: msgpack.Packer(buf_size=BUFFER_BYTES))


class _Source:
    """Python source under construction, with the objects that its names refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "bad": _bad,
            "short": _short,
            "packb": _packer.pack,
            "to_extra": _to_extra,
            "from_extra": _from_extra,
        }

    def add(self, indent: int, line: str) -> None:
        self.lines.append("    " * indent + line)

    def bind(self, hint: str, value: Any) -> str:
        name = f"{hint}_{len(self.names)}"
        self.names[name] = value
        return name

    def check(self, indent: int, where: str, spec: FieldSpec) -> None:
        """Add code that rejects a field's local variable if its value does not fit."""
        wrong = self.misfit(spec.name, spec.kind)
        if spec.nullable:
            wrong = f"{spec.name} is not None and ({wrong})"
        self.add(indent, f"if {wrong}: bad({where!r}, {spec.name!r}, {spec.name})")

    def function(self, name: str) -> Any:
        # The source consists of our own field names and numbers; see the module docstring.
        exec("\n".join(self.lines), self.names)  # noqa: S102
        return self.names[name]

    def misfit(self, value: str, kind: Kind) -> str:
        """Return an expression that is true if ``value`` is not of that kind."""
        if isinstance(kind, ArrayOf):
            test = self.bind("misfits", _element_test(kind.element))
            return f"type({value}) is not tuple or {value} and {test}({value})"
        if isinstance(kind, StructOf):
            return f"type({value}) is not {self.bind('struct', kind.struct)}"
        if kind.name in INTEGER_RANGES:
            low, high = INTEGER_RANGES[kind.name]
            return f"type({value}) is not int or not {low} <= {value} <= {high}"
        if kind.name == "uuid":
            return f"type({value}) is not bytes or len({value}) != 16"
        plain = {"string": "str", "bytes": "bytes", "bool": "bool", "float64": "float"}
        return f"type({value}) is not {plain[kind.name]}"


def _element_test(kind: Kind) -> Callable[[tuple[Any, ...]], bool]:
    """Return a function that is true if any element of a tuple is not of that kind."""
    source = _Source()
    source.add(0, "def misfits(values):")
    source.add(1, "for value in values:")
    source.add(2, f"if {source.misfit('value', kind)}: return True")
    source.add(1, "return False")
    test: Callable[[tuple[Any, ...]], bool] = source.function("misfits")
    return test


def _struct_of(kind: Kind) -> StructOf | None:
    if isinstance(kind, ArrayOf) and isinstance(kind.element, StructOf):
        return kind.element
    return None


def _compile_encoder(record_type: RecordType, version: int) -> Encoder:
    source = _Source()
    source.add(0, "def encode(record):")
    head = f"{record_type.key}, {version}, "
    _write_fields(source, record_type.name, record_type.fields, version)
    written = "".join(f"{spec.name}, " for spec in record_type.fields_at(version))
    source.add(1, "extra = record.extra")
    source.add(1, f"if extra is None: return packb(({head}{written}))")
    source.add(1, f"return packb(({head}{written}*from_extra(extra)))")
    encoder: Encoder = source.function("encode")
    return encoder


def _write_fields(source: _Source, owner: str, specs: tuple[FieldSpec, ...], version: int) -> None:
    """Add code that loads, checks and converts every field of ``record`` for writing."""
    for spec in specs:
        source.add(1, f"{spec.name} = record.{spec.name}")
        if spec.since > version:
            default = source.bind("default", spec.default)
            source.add(
                1,
                f"if {spec.name} != {default}: bad({owner!r}, {spec.name!r}, "
                f"{spec.name}, 'needs version {spec.since}, not {version}')",
            )
            continue
        source.check(1, owner, spec)
        struct = _struct_of(spec.kind)
        if struct is not None:
            convert = source.bind("to_array", _compile_struct_encoder(struct))
            source.add(1, f"if {spec.name}: {spec.name} = tuple(map({convert}, {spec.name}))")


def _compile_struct_encoder(kind: StructOf) -> Callable[[Any], tuple[Any, ...]]:
    source = _Source()
    source.add(0, "def to_array(record):")
    _write_fields(source, kind.struct.__name__, kind.fields, 0)
    written = "".join(f"{spec.name}, " for spec in kind.fields)
    source.add(1, "extra = record.extra")
    source.add(1, f"return ({written}) if extra is None else ({written}*from_extra(extra))")
    encoder: Callable[[Any], tuple[Any, ...]] = source.function("to_array")
    return encoder


def _compile_decoder(record_type: RecordType, version: int) -> Decoder:
    source = _Source()
    made = source.bind("made", record_type.record_class)
    specs = record_type.fields_at(version)
    _read_fields(source, "decode", record_type.name, specs, skipped=2)
    all_present = len(specs) == len(record_type.fields)
    arguments = ", ".join(
        spec.name if all_present else f"{spec.name}={spec.name}" for spec in specs
    )
    source.add(1, f"record = {made}({arguments})")
    source.add(1, "if extra is not None: record.extra = extra")
    source.add(1, "return record")
    decoder: Decoder = source.function("decode")
    return decoder


def _compile_struct_decoder(kind: StructOf) -> Callable[[Any], WireStruct]:
    source = _Source()
    made = source.bind("made", kind.struct)
    _read_fields(source, "from_array", kind.struct.__name__, kind.fields, skipped=0)
    arguments = "".join(f"{spec.name}, " for spec in kind.fields)
    source.add(1, f"return {made}({arguments}extra=extra)")
    decoder: Callable[[Any], WireStruct] = source.function("from_array")
    return decoder


def _read_fields(
    source: _Source, name: str, owner: str, specs: tuple[FieldSpec, ...], *, skipped: int
) -> None:
    """Add a function that unpacks, checks and converts ``values`` into local variables."""
    count = skipped + len(specs)
    source.add(0, f"def {name}(values):")
    source.add(1, f"if type(values) is not tuple: bad({owner!r}, 'array', values)")
    source.add(1, "extra = None")
    source.add(1, f"if len(values) != {count}:")
    source.add(2, f"if len(values) < {count}: short({owner!r}, len(values), {count})")
    source.add(2, f"extra = to_extra({owner!r}, values[{count}:])")
    source.add(2, f"values = values[:{count}]")
    targets = "".join(f"{name}, " for name in ["_"] * skipped + [spec.name for spec in specs])
    if targets:
        source.add(1, f"({targets}) = values")
    for spec in specs:
        struct = _struct_of(spec.kind)
        if struct is None:
            source.check(1, owner, spec)
            continue
        convert = source.bind("from_array", _compile_struct_decoder(struct))
        source.add(
            1, f"if type({spec.name}) is not tuple: bad({owner!r}, {spec.name!r}, {spec.name})"
        )
        source.add(1, f"if {spec.name}: {spec.name} = tuple(map({convert}, {spec.name}))")


def _bad(owner: str, field: str, value: object, cause: str = "has the wrong type or range") -> None:
    shown = repr(value)
    raise RecordCodecError(f"{owner}.{field} {cause}: {shown[:80]}")


def _short(owner: str, found: int, wanted: int) -> None:
    raise RecordCodecError(f"{owner} has {found} array elements, at least {wanted} are needed")


def _to_extra(owner: str, trailing: tuple[Any, ...]) -> Extra:
    tags: TaggedFields = ()
    last = trailing[-1]
    try:
        if type(last) is msgpack.ExtType and last.code == EXT_TAGS:
            tags, end = read_tagged_fields(last.data, 0, len(last.data))
            if end != len(last.data):
                raise ValueError(f"{len(last.data) - end} bytes behind the tagged fields")
            trailing = trailing[:-1]
        pack_trailing(trailing)
    except _MALFORMED as error:
        raise RecordCodecError(f"{owner} has unreadable unknown fields: {error}") from error
    return Extra(trailing, tags)


def pack_trailing(trailing: tuple[Any, ...]) -> bytes:
    """Encode unknown values as msgpack.

    Raises:
        ValueError: They cannot be written, or are nested deeper than ``EXTRA_DEPTH_MAX``.
    """
    level: list[Any] = [trailing]
    for _ in range(EXTRA_DEPTH_MAX + 1):
        level = [item for value in level for item in _items(value)]
        if not level:
            packed: bytes = msgpack.packb(trailing)
            return packed
    raise ValueError(f"values nested deeper than {EXTRA_DEPTH_MAX}")


def _items(value: object) -> tuple[Any, ...]:
    if type(value) is tuple:
        return value
    return (*value.keys(), *value.values()) if type(value) is dict else ()


def _from_extra(extra: Extra) -> tuple[Any, ...]:
    if not extra.tags:
        return extra.trailing
    return (*extra.trailing, msgpack.ExtType(EXT_TAGS, encode_tagged_fields(extra.tags)))
