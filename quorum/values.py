"""Immutable values that are cheap to create: a frozen dataclass without its overhead.

``@dataclass(frozen=True)`` stores every field through ``object.__setattr__``, which costs as
much as the rest of a small object's creation. The core creates several values per message, so that
was a tenth of a message's cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Class decorator like ``@dataclass(frozen=True, slots=True)``, with faster creation.

    Assigning to a field or deleting it raises ``FrozenInstanceError``. Copying and unpickling call
    the class with the fields.

    Raises:
        TypeError: The class has a base, a ``__post_init__``, or a field that is not a plain
            argument of the constructor.
    """
    frozen = dataclass(frozen=True, slots=True)(cls)
    of_class = fields(frozen)  # type: ignore[arg-type]
    plain = all(each.init and not each.kw_only for each in of_class)
    if frozen.__bases__ != (object,) or hasattr(frozen, "__post_init__") or not plain:
        raise TypeError(f"{cls.__qualname__} needs a dataclass that is not made in this way")
    kind: Any = frozen
    kind.__new__ = _maker(frozen, of_class)
    # ``object.__init__`` accepts the arguments of a class that defines ``__new__``.
    del kind.__init__
    kind.__reduce__ = _reduce
    return frozen


def _maker(frozen: type, of_class: tuple[Field[Any], ...]) -> Callable[..., Any]:
    """Return a ``__new__`` that fills an unlocked twin class and then changes its class.

    The twin has the same slots and nothing else, so an object may change from one to the other.
    """
    names = [each.name for each in of_class]
    twin = type("_Open", (), {"__slots__": tuple(names)})
    scope: dict[str, Any] = {"_open": twin, "_missing": MISSING}
    arguments, lines = ["_cls"], ["_self = _open()"]
    for each in of_class:
        name = each.name
        stored = name
        if each.default_factory is not MISSING:
            scope[f"_make_{name}"] = each.default_factory
            arguments.append(f"{name}=_missing")
            stored = f"_make_{name}() if {name} is _missing else {name}"
        elif each.default is not MISSING:
            scope[f"_default_{name}"] = each.default
            arguments.append(f"{name}=_default_{name}")
        else:
            arguments.append(name)
        lines.append(f"_self.{name} = {stored}")
    lines += ["_self.__class__ = _cls", "return _self"]
    body = "\n    ".join(lines)
    exec(f"def __new__({', '.join(arguments)}):\n    {body}\n", scope)  # noqa: S102
    made = scope["__new__"]
    made.__qualname__ = f"{frozen.__qualname__}.__new__"
    made.__module__ = frozen.__module__
    return made  # type: ignore[no-any-return]


def copier(kind: type[T], name: str) -> Callable[[T, Any], T]:
    """Return a function that copies a value with another ``name``.

    It does what ``dataclasses.replace`` does, in a third of the time if there are many fields.

    Raises:
        ValueError: The class has no such field.
    """
    names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    if name not in names:
        raise ValueError(f"{kind.__qualname__} has no field {name}")
    copied = ", ".join("_new" if each == name else f"_of.{each}" for each in names)
    scope: dict[str, Any] = {"_kind": kind}
    exec(f"def copied(_of, _new):\n    return _kind({copied})\n", scope)  # noqa: S102
    return scope["copied"]  # type: ignore[no-any-return]


def _reduce(self: Any) -> tuple[type, tuple[Any, ...]]:
    kind = type(self)
    return kind, tuple(getattr(self, each.name) for each in fields(kind))
