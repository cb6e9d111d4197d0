"""A packer that is kept packs what a new one would."""

import threading
from typing import Any

import msgpack
import pytest

from statemachine.kept_packer import KeptPacker

VALUES = [(1, "a", b"b", None), {"k": [1, 2]}, "x" * 100_000, (), "é"]


def counted() -> tuple[KeptPacker, list[msgpack.Packer]]:
    made: list[msgpack.Packer] = []

    def make() -> msgpack.Packer:
        made.append(msgpack.Packer())
        return made[-1]

    return KeptPacker(make), made


def test_it_packs_as_msgpack_and_keeps_its_packer() -> None:
    kept, made = counted()
    for _ in range(3):
        for value in VALUES:
            assert kept.pack(value) == msgpack.packb(value)
    # A large value takes the packer with it: its buffer never shrinks.
    assert len(made) == 1 + 3


def test_after_an_error_no_half_of_a_value_is_left() -> None:
    kept, _ = counted()
    for broken in ((1, 2, object()), ("a" * 50, "\ud800"), 1 << 70):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            kept.pack(broken)
        assert kept.pack((7,)) == msgpack.packb((7,))


def test_a_value_may_be_packed_while_another_one_is() -> None:
    def plain(value: Any) -> Any:
        return ["inner", len(kept.pack([str(value)] * 40))]

    kept = KeptPacker(lambda: msgpack.Packer(default=plain))
    wanted = msgpack.packb([1, *[["inner", len(msgpack.packb([str(1j)] * 40))]] * 2, 2])
    for _ in range(3):
        assert kept.pack([1, 1j, 1j, 2]) == wanted


def test_threads_have_packers_of_their_own() -> None:
    def plain(_: Any) -> Any:
        both.wait()
        return "inner"

    kept = KeptPacker(lambda: msgpack.Packer(default=plain))
    both = threading.Barrier(2, timeout=30)
    found: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: kept.pack([n, 1j, "end"])}))
        for n in range(2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {n: msgpack.packb([n, "inner", "end"]) for n in range(2)}
