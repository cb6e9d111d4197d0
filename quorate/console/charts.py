"""Two small charts as inline SVG. Every text in them is escaped; colours come from the style sheet.

Libraries that draw more bring scripts or many dependencies; bars and a timeline need neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

WIDTH: Final = 720
_COLOURS: Final = 8
"""Classes ``c0`` to ``c7`` of the style sheet, one per leader."""
_LABEL_MIN: Final = 18
"""Narrower blocks have no name in them."""


def bar(value: int, most: int) -> Markup:
    """Return a bar of ``value`` out of ``most``: none for 0, a pale one for -1, not known."""
    if value == 0:
        return Markup("")
    if value < 0:
        return Markup('<svg class="bar" viewBox="0 0 100 10" role="img" aria-label="unknown">'
                      '<rect class="unknown" width="100" height="10"/></svg>')  # fmt: skip
    width = 0 if most <= 0 else max(1, round(100 * value / most))
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        'aria-label="{} of {}"><rect class="track" width="100" height="10"/>'
        '<rect class="value" width="{}" height="10"/></svg>'
    ).format(value, most, min(100, width))


def timeline(terms: Sequence[Mapping[str, Any]], now_ms: int) -> Markup:
    """Return leadership terms as blocks on one axis of time, each coloured by its leader.

    ``terms`` are newest first, with ``epoch``, ``time``, ``known_until`` and ``leader``. Where the
    newest was last known before ``now_ms``, the rest of the axis is marked: nobody is known to
    have led. With -1 the axis ends with the newest term.
    """
    ordered = [each for each in reversed(terms) if each["time"] >= 0]
    if not ordered:
        return Markup("")
    start = ordered[0]["time"]
    last = max(each["known_until"] for each in ordered)
    end = max(now_ms, last) + 1
    scale = WIDTH / (end - start)
    parts = []
    for each in ordered:
        leader = each["leader"]
        parts.append(
            _block(
                (each["time"] - start) * scale,
                (each["known_until"] - each["time"]) * scale,
                "unknown" if leader is None else f"c{leader % _COLOURS}",
                f"{'unknown leader' if leader is None else f'node {leader}'}, epoch "
                f"{each['epoch']}",
                "" if leader is None else str(leader),
            )
        )
    if now_ms > last and terms[0]["time"] >= 0:
        left = (last - start) * scale
        parts.append(_block(left, WIDTH - left, "none", "no leader is known", "none"))
    return Markup(
        '<svg class="timeline" viewBox="0 0 {} 44" role="img" aria-label="leaders over time">'
        "{}</svg>"
    ).format(WIDTH, Markup("").join(parts))


def _block(left: float, width: float, style: str, title: str, name: str) -> Markup:
    width = max(1.5, width)
    label = Markup('<text x="{:.1f}" y="27">{}</text>').format(left + width / 2, name)
    return Markup(
        "<g><title>{}</title>"
        '<rect class="{}" x="{:.1f}" y="6" width="{:.1f}" height="32" rx="3"/>{}</g>'
    ).format(title, style, left, width, label if width > _LABEL_MIN else "")
