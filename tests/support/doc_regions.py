"""Parts of the documents that are generated from the code, between two comments.

A region begins with ``<!-- generated: name -->`` and ends with ``<!-- end -->``, each on a line
of its own. ``tests/tidy/test_generated_docs.py`` compares every region with the code;
``pytest tests/tidy/test_generated_docs.py --rewrite`` updates the regions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n)(.*?)(<!-- end -->)", re.S)


def region_names(text: str) -> list[str]:
    """Names of the regions of a document, in order."""
    return [match[2] for match in REGION.finditer(text)]


def rendered(text: str, makers: Mapping[str, Callable[[], str]]) -> str:
    """Return the document with every region generated again.

    Raises:
        KeyError: No maker exists for a region.
    """
    return REGION.sub(lambda match: f"{match[1]}{makers[match[2]]().strip()}\n{match[4]}", text)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def code(text: str, language: str = "") -> str:
    """A fenced block."""
    return f"```{language}\n{text.rstrip()}\n```"


def dump(parts: Iterable[tuple[bytes, str]]) -> str:
    """Return bytes in hex, sixteen to a line, each part with its meaning."""
    lines = []
    position = 0
    for data, meaning in parts:
        for start in range(0, len(data), 16):
            piece = data[start : start + 16]
            note = meaning if start == 0 else ""
            lines.append(f"{position + start:04x}  {piece.hex(' '):<49}{note}".rstrip())
        position += len(data)
    return code("\n".join(lines))
