"""Results as frozen dataclasses over the messages that nodes answer with.

A received value keeps its message. What is a number or a text is taken from it at once; a list and
what may be absent is converted when it is first read, once. So what a program does not look at
costs nothing, however long the answer is. ``quorate.client.results`` has the classes, which are
generated from the protos.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, fields
from enum import IntEnum
from importlib import import_module
from operator import attrgetter
from typing import Any, ClassVar, Final, NoReturn, Self, TypeVar, dataclass_transform

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

Class = TypeVar("Class", bound=type)
Converter = Callable[[Any], Any]
"""Returns one field of a message as a field of the value."""

RESULTS: Final = f"{__name__.rpartition('.')[0]}.results"
_CLASSES: Final[dict[str, Any]] = {}
"""The class of each message and enum, by its full name."""
UNREAD: Final = object()
"""What the slot of a list has until the list is read."""
_get: Final = object.__getattribute__


class _SignatureOfFields:
    """The signature of a result's class, made when somebody looks: ``help`` and notebooks do."""

    def __get__(self, _value: object, cls: type[MessageValue]) -> Any:
        from inspect import Parameter, Signature

        return Signature(
            [
                Parameter(
                    each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
                )
                for each in fields(cls)  # type: ignore[arg-type]  # each class is a dataclass
            ]
        )


class MessageValue:
    """Base of every result. Fields have the names and the meaning of the protos.

    Lists are tuples, and an absent ``optional`` field is None. A value of a newer node may have
    fields that this release does not know; ``to_message`` keeps them.
    """

    __slots__ = ("_message",)

    __signature__ = _SignatureOfFields()
    _type: ClassVar[Any]
    _wrap: ClassVar[Converter]
    _compared: ClassVar[Any]
    _members: ClassVar[tuple[tuple[str, Any, Callable[[Any, Any], None]], ...]]
    """Name, default, and what puts a value into the slot, of each field."""
    _message: Message

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the value of a message, which must not change afterwards.

        Raises:
            TypeError: It is a message of another type.
        """
        if type(message) is not cls._type:
            raise TypeError(f"{cls.__name__} of a {type(message).__name__}")
        value: Self = cls._wrap(message)
        return value

    def to_message(self) -> Any:
        """Return a copy of the received message, or the fields as one if there is none.

        The copy of a received message is equal byte for byte when it is serialized in the same way.
        """
        message = self._type()
        if _is_received(self):
            message.CopyFrom(self._message)
            return message
        for name in self._fields():
            _put(message, name, getattr(self, name))
        return message

    def __repr__(self) -> str:
        """Show the fields that are there."""
        shown = ((name, getattr(self, name)) for name in self._fields())
        inside = ", ".join(f"{name}={value!r}" for name, value in shown if value is not None)
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._compared(self) == other._compared(other))

    def __hash__(self) -> int:
        return hash(self._compared(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), {name: getattr(self, name) for name in self._fields()})

    @staticmethod
    def _fill(draft: Any, message: Any, /) -> None:
        """Take from the message what is neither a list nor a message that may be absent."""

    @classmethod
    def _fields(cls) -> dict[str, Any]:
        """Return the defaults of the fields, by name."""
        return {name: default for name, default, _ in cls._members}

    def _one_of(self, oneof: str) -> Any:
        """Return the member of a oneof that is set, or None."""
        if _is_received(self):
            name = self._message.WhichOneof(oneof)
            return None if name is None else getattr(self, name)
        members = self._type.DESCRIPTOR.oneofs_by_name[oneof].fields
        values = (getattr(self, each.name) for each in members)
        return next((value for value in values if value is not None), None)


class EnumValues(dict[int, Any]):
    """The members of an enum by number, also of numbers that this release does not know."""

    def __init__(self, enum: type[OpenEnum]) -> None:
        super().__init__((int(each), each) for each in enum)
        self._enum = enum

    def __missing__(self, number: int) -> Any:
        return self._enum(number)


class OpenEnum(IntEnum):
    """Base of every enum. A number that this release does not know is a value without a name."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}"
        member._value_ = value
        return member


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value_of(protobuf: Any) -> Callable[[Class], Class]:
    """Make a class the frozen, slotted dataclass of a message class.

    What ``dataclass`` would compile for each class is shared by all: that takes ten times as long
    to load as all else in it, and every command and program would wait for it.
    """

    def bind(declared: Class) -> Class:
        cls: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(declared)
        cls._type = protobuf
        slots = cls.__dict__
        cls._members = tuple((e.name, e.default, slots[e.name].__set__) for e in fields(cls))
        names = [name for name, _, _ in cls._members]
        cls._compared = staticmethod(attrgetter(*names) if names else _nothing)
        _make_lazy(cls)
        # Not in the base: an object that is being filled has neither.
        cls.__init__, cls.__setattr__, cls.__delattr__ = _initialise, _refuse, _refuse
        cls._wrap = staticmethod(_wrapper(cls))
        _CLASSES[protobuf.DESCRIPTOR.full_name] = cls
        bound: Class = cls
        return bound

    return bind


def enum_of(protobuf: Any) -> Callable[[Class], Class]:
    """Bind a class to its enum."""

    def bind(cls: Class) -> Class:
        _CLASSES[protobuf.DESCRIPTOR.full_name] = cls
        return cls

    return bind


def _initialise(self: MessageValue, **given: Any) -> None:
    for name, default, put in self._members:
        put(self, given.pop(name, default))
    for name in given:
        raise TypeError(f"{type(self).__name__} has no field {name!r}")


def _refuse(self: MessageValue, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r} of a {type(self).__name__}")


def _made(cls: type[MessageValue], values: dict[str, Any]) -> MessageValue:
    return cls(**values)


def _nothing(_value: MessageValue) -> None:
    """What values without fields are compared by."""


def _is_received(value: MessageValue) -> bool:
    try:
        _get(value, "_message")
    except AttributeError:
        return False
    return True


def _put(message: Any, name: str, value: Any) -> None:
    if isinstance(value, tuple | list):
        plain = [each.to_message() if isinstance(each, MessageValue) else each for each in value]
        getattr(message, name).extend(plain)
    elif isinstance(value, MessageValue):
        getattr(message, name).CopyFrom(value.to_message())
    elif value is not None:
        setattr(message, name, value)


def _class_of(descriptor: Descriptor | EnumDescriptor) -> Any:
    if descriptor.full_name not in _CLASSES:
        # Records are many, and loaded for the programs only that read them.
        import_module(f"{RESULTS}.{descriptor.file.name.rpartition('/')[2].removesuffix('.proto')}")
    return _CLASSES[descriptor.full_name]


def _make_lazy(cls: Any) -> None:
    """Let lists, and messages that may be absent, be converted when they are read first."""
    by_name = cls._type.DESCRIPTOR.fields_by_name
    for each in fields(cls):
        field = by_name[each.name]
        if each.default == () or (each.default is None and field.message_type is not None):
            slot = cls.__dict__[each.name]
            setattr(cls, each.name, property(_getter(slot, field, each.default), slot.__set__))


def _getter(slot: Any, field: FieldDescriptor, default: Any) -> Converter:
    get, put = slot.__get__, slot.__set__
    convert: Converter | None = None

    def read(value: Any) -> Any:
        nonlocal convert
        try:
            found = get(value)
        except AttributeError:
            found = UNREAD
        if found is UNREAD:
            if convert is None:
                convert = _converter(field, default)
            found = convert(value._message)  # noqa: SLF001 - of this module's class
            put(value, found)
        return found

    return read


def _wrapper(cls: Any) -> Converter:
    """Return what makes a value of a message of the right type.

    It is filled as an object of a class that is not frozen, because that costs a tenth.
    """
    draft_class: Any = type(cls.__name__, (MessageValue,), {"__slots__": cls.__slots__})
    fill = cls._fill

    def wrap(message: Any) -> Any:
        value = draft_class()
        value._message = message  # noqa: SLF001 - of this module's class
        fill(value, message)
        value.__class__ = cls
        return value

    return wrap


def _converter(field: FieldDescriptor, default: Any) -> Converter:
    """Return what converts a list, or a message that may be absent."""
    name = field.name
    get = attrgetter(name)
    wrap: Converter | None = None
    if field.message_type is not None:
        wrap = _class_of(field.message_type)._wrap  # noqa: SLF001 - of a subclass
    elif field.enum_type is not None:
        wrap = _class_of(field.enum_type)
    if default == ():
        if wrap is None:
            return lambda message: tuple(get(message))
        return lambda message: tuple([wrap(each) for each in get(message)])
    return lambda message: wrap(get(message)) if wrap and message.HasField(name) else None
