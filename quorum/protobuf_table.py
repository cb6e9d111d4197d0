"""Convert dataclasses to and from protobuf messages: each described once, for both directions.

``CodecTable.describe`` pairs a dataclass (or named tuple) with a message type. Fields match by
name, and a value's type hint determines its coding; the description states the exceptions. Both
directions are compiled into plain functions, as ``dataclasses`` does for ``__init__``, so they cost
as little as code written by hand (ADR 55). No outside text reaches that source: it consists of the
names of our own fields.

Rules:
    1. A message field with presence may be absent if its type hint allows None, or if it has a
       default: that value then represents absence. Otherwise absence is refused.
    2. ``FixedBytes`` of another length are refused. Absent ones are zeros, and zeros are omitted.
    3. Elements of a sequence are coded like fields. A pair is a message of two fields, in the
       order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import takewhile
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from quorum.types import FixedBytes

T = TypeVar("T")

EMPTY: Final = object()
"""In ``absent``: an absent message is read as one without fields."""

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Converter:
    """Both directions of a value that its type hint does not determine; None: unchanged."""

    to_pb: Callable[[Any], Any] | None = None
    from_pb: Callable[[Any], Any] | None = None
    above: int = 0
    """The message's number is this much greater than ours."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """The two functions of one type. ``from_pb`` takes its ``beside`` fields as more arguments."""

    message: Any
    to_pb: Callable[[T], Any]
    from_pb: Callable[..., T]
    sequence_max: int | None


class CodecTable:
    """Descriptions of types; each comes after those that it refers to."""

    def __init__(
        self,
        refuse: Callable[[str], Exception],
        *,
        beside: Iterable[str] = (),
        local: Iterable[str] = (),
        rename: Mapping[str, str] = _NOTHING,
        groups: Mapping[str, Mapping[str, str]] = _NOTHING,
        converters: Mapping[object, Converter] = _NOTHING,
    ) -> None:
        """Set the rules for every type.

        Args:
            refuse: Creates the error for a malformed message.
            beside: Fields outside the message, passed to ``from_pb`` separately.
            local: Fields that are not sent.
            rename: The message's name of a field, by ours.
            groups: Required messages by name; each maps our field names to those inside it.
            converters: By type hint or by field name.
        """
        self._refuse = refuse
        self._beside = tuple(beside)
        self._local = frozenset(local)
        self._rename = rename
        self._groups = groups
        self._converters = dict(converters)
        self._codecs: dict[Any, Codec[Any]] = {}

    def __getitem__(self, kind: type[T]) -> Codec[T]:
        """Return the codec of a described type."""
        return self._codecs[kind]

    def describe(
        self,
        kind: type[T],
        message: Any,
        *,
        rename: Mapping[str, str] = _NOTHING,
        convert: Mapping[str, Converter] = _NOTHING,
        absent: Mapping[str, object] = _NOTHING,
        at_most: Mapping[str, int] = _NOTHING,
        sequence_max: int | None = None,
        check: Callable[[T], None] | None = None,
    ) -> Codec[T]:
        """Compile both directions of a type.

        Args:
            kind: The type, its fields in the order of its constructor.
            message: The class of the messages.
            rename: As for the table.
            convert: Fields with their own conversion.
            absent: Value that represents absence when read, for fields without a default.
            at_most: Longest sequences, by field.
            sequence_max: Longest sequence of such values in any message.
            check: Raises for an invalid value that was read.

        Raises:
            TypeError: A field has no counterpart on the other side.
        """
        compiler = _Compiler(self._refuse, self._codecs, self._converters, kind, message)
        theirs = compiler.fields
        groups = {name: group for name, group in self._groups.items() if name in theirs}
        not_inside = self._local.union(self._beside, *groups.values())
        names = {
            ours: rename.get(ours) or self._rename.get(ours, ours)
            for ours in compiler.defaults
            if ours not in not_inside or ours in rename
        }
        unmatched = {*names.values(), *groups} ^ set(theirs)
        if unmatched or not names.keys() >= {*rename, *convert, *absent, *at_most}:
            raise TypeError(f"{kind.__name__}: fields without a counterpart: {unmatched or names}")
        for name, group in groups.items():
            compiler.add_group(name, group)
        for ours, name in names.items():
            compiler.add(ours, theirs[name], convert.get(ours), absent, at_most.get(ours))
        beside = [name for name in self._beside if name in compiler.defaults]
        to_pb, from_pb = compiler.compile(beside, check)
        self._codecs[kind] = codec = Codec(message, to_pb, from_pb, sequence_max)
        return codec


class _Compiler:
    """The source of one type's two functions, and the objects that its names refer to."""

    def __init__(
        self,
        refuse: Callable[[str], Exception],
        codecs: Mapping[Any, Codec[Any]],
        converters: Mapping[object, Converter],
        kind: Any,
        message: Any,
    ) -> None:
        self.fields: dict[str, FieldDescriptor] = dict(message.DESCRIPTOR.fields_by_name)
        self.defaults = _defaults(kind)
        self._refuse = refuse
        self._codecs = codecs
        self._converters = converters
        self._kind = kind
        self._message = message
        self._hints = get_type_hints(kind, include_extras=True)
        name = message.DESCRIPTOR.name
        self._title = name.removesuffix("Request").replace("Response", " response")
        self._checks: list[str] = []
        self._reads: dict[str, str] = {}
        self._writes: list[str] = []
        self._names: dict[str, Any] = {"refuse": self._raise, "fixed": self._misfit}

    def add_group(self, name: str, group: Mapping[str, str]) -> None:
        """Add one required message that contains several of our fields."""
        self._require(name)
        made = self._bind(_class_of(self.fields[name]))
        parts = ", ".join(f"{inside}=item.{ours}" for ours, inside in group.items())
        self._writes.append(f"{name}={made}({parts})")
        for ours, inside in group.items():
            self._reads[ours] = f"value.{name}.{inside}"

    def add(
        self,
        ours: str,
        theirs: FieldDescriptor,
        converter: Converter | None,
        absent: Mapping[str, object],
        at_most: int | None,
    ) -> None:
        """Add one field of ours that is one field of the message."""
        hint, label = self._hints[ours], ours.replace("_", " ")
        read, write = f"value.{theirs.name}", f"item.{ours}"
        if theirs.has_presence:
            optional, is_optional = _without_none(hint)
            default = None if is_optional else self.defaults[ours]
            stand_in = absent.get(ours, default)
            if stand_in is MISSING:
                self._require(theirs.name)
            read = self._read(optional, read, label, converter, theirs)
            write = self._write(optional, write, converter, theirs)
            if stand_in is not MISSING and stand_in is not EMPTY:
                name = self._bind(stand_in)
                read = _if_present(read, "value", theirs, name)
                if ours not in absent:
                    write = f"None if item.{ours} == {name} else {write}"
        else:
            if at_most is None:
                at_most = self._sequence_max(hint)
            if at_most is not None:
                count = f"len({read})"
                self._checks.append(
                    f"if {count} > {at_most}:"
                    f" refuse(f'{{{count}}} in {label}, more than {at_most}')"
                )
            read = self._read(hint, read, label, converter, theirs)
            write = self._write(hint, write, converter, theirs)
        self._reads[ours] = read
        self._writes.append(f"{theirs.name}={write}")

    def compile(self, beside: list[str], check: Callable[[Any], None] | None) -> tuple[Any, Any]:
        """Return both functions: to the message, and from it."""
        message, kind = self._bind(self._message), self._bind(self._kind)
        reads = {name: name for name in beside} | self._reads
        # Positional up to the first omitted argument: keyword arguments cost time.
        arguments = list(takewhile(reads.__contains__, self.defaults))
        given = [reads.pop(name) for name in arguments]
        made = f"{kind}({', '.join([*given, *(f'{ours}={read}' for ours, read in reads.items())])})"
        if check is not None:
            self._checks.append(f"read = {made}")
            self._checks.append(f"{self._bind(check)}(read)")
            made = "read"
        body = "\n    ".join([*self._checks, f"return {made}"])
        source = (
            f"def to_pb(item):\n    return {message}({', '.join(self._writes)})\n"
            f"def from_pb({', '.join(['value', *beside])}):\n    {body}\n"
        )
        # The source consists of names of our own fields; see the module docstring.
        exec(source, self._names)  # noqa: S102
        return self._names["to_pb"], self._names["from_pb"]

    def _read(
        self, hint: Any, at: str, label: str, converter: Converter | None, theirs: FieldDescriptor
    ) -> str:
        """Return the expression for our value, given that of the message's."""
        converter = converter or self._converter(hint, theirs.name)
        if converter is not None:
            read = f"{self._bind(converter.from_pb)}({at})" if converter.from_pb else at
            return f"{read} - {converter.above}" if converter.above else read
        if hint in self._codecs:
            return f"{self._bind(self._codecs[hint].from_pb)}({at})"
        if (size := _fixed_size(hint)) is not None:
            return f"{at} if len({at}) == {size} else fixed({at}, {label!r}, {size})"
        if get_origin(hint) is not tuple:
            return at
        first, second = get_args(hint)
        if second is Ellipsis:
            element = self._read(first, "each", label.removesuffix("s"), None, theirs)
            return f"tuple({at})" if element == "each" else f"tuple([{element} for each in {at}])"
        return "(" + ", ".join(self._pair(hint, at, label, theirs)) + ")"

    def _pair(self, hint: Any, at: str, label: str, theirs: FieldDescriptor) -> list[str]:
        reads = []
        for part, inside in zip(get_args(hint), _in_order(theirs), strict=True):
            kind, is_optional = _without_none(part)
            read = self._read(kind, f"{at}.{inside.name}", label, None, inside)
            reads.append(_if_present(read, at, inside, "None") if is_optional else f"({read})")
        return reads

    def _write(
        self, hint: Any, at: str, converter: Converter | None, theirs: FieldDescriptor
    ) -> str:
        """Return the expression for the message's value, given that of ours."""
        converter = converter or self._converter(hint, theirs.name)
        if converter is not None:
            write = f"{self._bind(converter.to_pb)}({at})" if converter.to_pb else at
            return f"{write} + {converter.above}" if converter.above else write
        if hint in self._codecs:
            return f"{self._bind(self._codecs[hint].to_pb)}({at})"
        if (size := _fixed_size(hint)) is not None:
            return f"{at} if {at} != {self._bind(bytes(size))} else b''"
        if get_origin(hint) is not tuple:
            return at
        first, second = get_args(hint)
        if second is Ellipsis:
            element = self._write(first, "each", None, theirs)
            return at if element == "each" else f"[{element} for each in {at}]"
        parts = [
            f"{inside.name}={self._write(_without_none(part)[0], f'{at}[{index}]', None, inside)}"
            for index, (part, inside) in enumerate(
                zip(get_args(hint), _in_order(theirs), strict=True)
            )
        ]
        return f"{self._bind(_class_of(theirs))}({', '.join(parts)})"

    def _converter(self, hint: Any, name: str) -> Converter | None:
        return self._converters.get(name) or self._converters.get(hint)

    def _sequence_max(self, hint: Any) -> int | None:
        element = get_args(hint)[0] if get_origin(hint) is tuple else None
        return self._codecs[element].sequence_max if element in self._codecs else None

    def _require(self, name: str) -> None:
        text = f"{self._title}: {name} is missing"
        self._checks.append(f"if not value.HasField({name!r}): refuse({text!r})")

    def _bind(self, value: object) -> str:
        name = f"_{len(self._names)}"
        self._names[name] = value
        return name

    def _raise(self, text: str) -> None:
        raise self._refuse(text)

    def _misfit(self, value: bytes, label: str, size: int) -> bytes:
        if value:
            raise self._refuse(f"{label} has {len(value)} bytes, not {size}")
        return bytes(size)


def _defaults(kind: Any) -> dict[str, Any]:
    """Return every field of a dataclass or named tuple, with its default or MISSING."""
    if is_dataclass(kind):
        return {each.name: each.default for each in fields(kind)}
    return {name: kind._field_defaults.get(name, MISSING) for name in kind._fields}


def _in_order(theirs: FieldDescriptor) -> list[FieldDescriptor]:
    return sorted(_class_of(theirs).DESCRIPTOR.fields, key=lambda each: each.number)


def _class_of(theirs: FieldDescriptor) -> Any:
    if theirs.message_type is None:
        raise TypeError(f"{theirs.full_name} is no message")
    return GetMessageClass(theirs.message_type)


def _if_present(read: str, at: str, theirs: FieldDescriptor, otherwise: str) -> str:
    """Return ``read`` if the field is present. A true value is: presence is slow to check."""
    asked = f"({read} if {at}.HasField({theirs.name!r}) else {otherwise})"
    return f"(({read}) or {asked})" if theirs.message_type is None else asked


def _without_none(hint: Any) -> tuple[Any, bool]:
    parts = get_args(hint)
    if NoneType not in parts:
        return hint, False
    return next(part for part in parts if part is not NoneType), True


def _fixed_size(hint: Any) -> int | None:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note.size for note in notes if isinstance(note, FixedBytes)), None)
