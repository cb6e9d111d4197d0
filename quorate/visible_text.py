"""Text of others made safe to show: no character moves a cursor, forges a line or hides another.

Names, reasons and error texts come from clients and peers and end in a terminal or in the process
log. There an escape sequence rewrites what was shown before, and a line feed begins a line that
looks like ours.
"""

from __future__ import annotations

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Control characters (C0, DEL, C1), line separators, marks that turn the direction of writing,
the byte-order mark, and halves of surrogate pairs, which no stream can encode."""
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""``text`` with every unsafe character written as an escape: ``\n``, ``\x1b``, ``\u202e``.

    Text without such a character is returned unchanged, backslashes included: this is for reading,
    not for decoding again.
    """
    return _UNSAFE.sub(_escape, text)


def visible_json(text: str) -> str:
    r"""JSON text with the unsafe characters that JSON allows in strings as ``\uXXXX``.

    The document stays the same one. Line feeds between its parts stay as well.
    """
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: _json_escape(found[0]), text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _SHORT:
        return _SHORT[character]
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def _json_escape(character: str) -> str:
    return character if character in _SHORT else f"\\u{ord(character):04x}"
