"""Record schemas: how a record class declares field types, versions, tags and nullability.

A record type is a slotted dataclass whose annotations are its wire schema; no field is declared
twice. ``describe`` reads a class into a ``RecordType``, which drives both codecs.
``statemachine.records`` has the table of types, ``statemachine.codec`` encodes them.

See: docs/reference/record-types.md (Metadata records), KIP-631.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, TypeAlias, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Scalar:
    """A fixed wire type, by its name in Kafka's schema language."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """A sequence of one element kind; a tuple in memory."""

    element: Kind


@dataclass(frozen=True, slots=True)
class StructOf:
    """A nested structure, one of the ``WireStruct`` classes."""

    struct: type[WireStruct]
    fields: tuple[FieldSpec, ...]


Kind: TypeAlias = Scalar | ArrayOf | StructOf


@dataclass(frozen=True, slots=True)
class Since:
    """The first record version that has the field."""

    version: int


@dataclass(frozen=True, slots=True)
class Tag:
    """The field is written in the tagged section under this number (kafka codec only)."""

    number: int


Int8: TypeAlias = Annotated[int, Scalar("int8")]
Int16: TypeAlias = Annotated[int, Scalar("int16")]
Int32: TypeAlias = Annotated[int, Scalar("int32")]
Int64: TypeAlias = Annotated[int, Scalar("int64")]
UInt16: TypeAlias = Annotated[int, Scalar("uint16")]
UuidValue: TypeAlias = Annotated[bytes, Scalar("uuid")]

INTEGER_RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint16": (0, (1 << 16) - 1),
}
"""Smallest and largest value of each integer type, both inclusive."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Fields that a newer release wrote into a record and this release does not know.

    Kept with the record and written back, because this node may write the next checkpoint.
    """

    trailing: tuple[Any, ...] = ()
    """Values after the last known field of a native array."""
    tags: tuple[tuple[int, bytes], ...] = ()
    """Unknown tagged fields of the kafka codec, ascending by tag."""


@dataclass(frozen=True, slots=True)
class WireStruct:
    """Base of the structures nested in records. Immutable, because images hold them."""

    extra: Extra | None = field(default=None, kw_only=True)


@dataclass(slots=True)
class MetadataRecord:
    """Base of all records: one fact of the metadata log.

    Records are plain values. They are mutable only because building a frozen instance costs
    three times as much; no code changes one after its creation. Sequences are tuples.
    """

    API_KEY: ClassVar[int] = -1
    VERSION_MAX: ClassVar[int] = 0
    VERSION_STEPS: ClassVar[tuple[tuple[int, int], ...]] = ()
    """(metadata.version level, record version from there on): 3.3-IV3 is 7, 3.4-IV0 8,
    3.7-IV2 17, 4.0-IV1 23, 4.3-IV0 30. Without steps a type is written in the lowest version that
    carries its content."""
    IDENTITY: ClassVar[tuple[str, ...] | None] = None
    """Fields that identify what a full-state record describes. Only such records occur in a
    checkpoint; None marks a change or an event."""
    HISTORY: ClassVar[tuple[str, str] | None] = None
    """A key column of the audit's ``history``, and the differently named field that fills it."""
    extra: Extra | None = field(default=None, kw_only=True)

    def record_key(self) -> tuple[Any, ...]:
        """Return the key that identifies what the record describes; replay reports the same key.

        Raises:
            TypeError: Records of this type describe a change or an event; they have no key.
        """
        if self.IDENTITY is None:
            raise TypeError(f"{type(self).__name__} is no full-state record")
        return (self.API_KEY, *(getattr(self, name) for name in self.IDENTITY))


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a record or structure as it is on the wire."""

    name: str
    kind: Kind
    since: int
    tag: int | None
    nullable: bool
    default: Any


@dataclass(frozen=True, slots=True)
class RecordType:
    """One row of the table of record types."""

    name: str
    key: int
    version_max: int
    fields: tuple[FieldSpec, ...]
    record_class: type[MetadataRecord]

    @property
    def versions(self) -> range:
        """Every version that this release reads and writes."""
        return range(self.version_max + 1)

    def fields_at(self, version: int) -> tuple[FieldSpec, ...]:
        """Return the fields of a version, in wire order."""
        return tuple(spec for spec in self.fields if spec.since <= version)


def describe(record_class: type[MetadataRecord]) -> RecordType:
    """Read the wire schema of a record class from its annotations."""
    return RecordType(
        name=record_class.__name__,
        key=record_class.API_KEY,
        version_max=record_class.VERSION_MAX,
        fields=field_specs(record_class),
        record_class=record_class,
    )


def field_specs(owner: type[MetadataRecord] | type[WireStruct]) -> tuple[FieldSpec, ...]:
    """Return the fields of a record or structure class in declared order, without ``extra``."""
    hints = get_type_hints(owner, include_extras=True)
    return tuple(
        _field_spec(item.name, hints[item.name], item.default)
        for item in fields(owner)
        if item.name != "extra"
    )


def _field_spec(name: str, hint: Any, default: Any) -> FieldSpec:
    notes: Sequence[Any] = ()
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
    nullable = False
    if isinstance(hint, types.UnionType):
        hint = next(arg for arg in get_args(hint) if arg is not types.NoneType)
        nullable = True
    scalar = next((note for note in notes if isinstance(note, Scalar)), None)
    return FieldSpec(
        name=name,
        kind=scalar if scalar is not None else _kind(hint),
        since=next((note.version for note in notes if isinstance(note, Since)), 0),
        tag=next((note.number for note in notes if isinstance(note, Tag)), None),
        nullable=nullable,
        default=default,
    )


_PLAIN_KINDS = {
    str: Scalar("string"),
    bytes: Scalar("bytes"),
    bool: Scalar("bool"),
    float: Scalar("float64"),
}


def _kind(hint: Any) -> Kind:
    if get_origin(hint) is Annotated:
        return next(note for note in get_args(hint) if isinstance(note, Scalar))
    if get_origin(hint) is tuple:
        return ArrayOf(_kind(get_args(hint)[0]))
    if isinstance(hint, type) and issubclass(hint, WireStruct):
        return StructOf(hint, field_specs(hint))
    return _PLAIN_KINDS[hint]
