"""Render the figures of a run as a table. The JSON has more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.build_form import UNKNOWN_FORM, first_line
from bench.scale import scale_rows
from bench.targets import target_rows


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _load_rows(figures: Mapping[str, Any]) -> list[list[str]]:
    rows = [_LOAD_COLUMNS]
    for part in LOADS:
        rows.extend(_load_row("quorate", row) for row in figures.get(part, ()))
        for name, peer in figures["peers"].items():
            rows.extend(_load_row(name, row) for row in peer.get(part, ()))
    return rows


LOADS = ("writes", "reads", "watchers")
"""Parts in which systems are loaded in turn."""
_LOAD_COLUMNS = [
    "load", "system", "clients", "per second", "p50 ms", "p99 ms", "rate ratio", "p50 ratio",
    "µs leader + followers + load", "rounds", "stolen",
]  # fmt: skip


def _load_row(name: str, row: Mapping[str, Any]) -> list[str]:
    ratios = [f"{row[key]:.2f}" if key in row else "" for key in ("rate_ratio", "p50_ratio")]
    stolen = "" if row["stolen"] is None else f"{row['stolen']:.1%}"
    used = f"{row['leader_us']:.0f} + {sum(row['followers_us']):.0f} + {row['load_us']:.0f}"
    return [
        f"{row['kind']} at the {row['place']}", name, str(row["clients"]), f"{row['rate']:,.0f}",
        f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", *ratios, used,
        f"{row['rounds']} + {row['disturbed']}", stolen,
    ]  # fmt: skip


def _other_rows(figures: Mapping[str, Any]) -> list[list[str]]:
    rows = [["measurement", "figure", "range"]]
    if "failover" in figures:
        rows.append(_failover_row("kill to next ack, quorate", figures["failover"]))
    for name, peer in figures["peers"].items():
        if "failover" in peer:
            rows.append(_failover_row(f"kill to next ack, {name}", peer["failover"]))
    for key, text, unit in (
        ("snapshot", "FetchSnapshot, verified", "MB/s"),
        ("image", "checkpoint to image", "records/s"),
    ):
        if key in figures:
            each = figures[key]
            rows.append(
                [text, f"{each['p50']:,.0f} {unit}", f"{each['min']:,.0f} to {each['max']:,.0f}"]
            )
    for each in figures.get("client_reads", ()):
        text = f"{each['level']} reads at the {each['node']} by {each['by']}"
        share = figures.get("floors", {}).get("grpc_unary_64_per_s")
        ratio = f", {each['per_second'] / share:.2f} of the floor" if share else ""
        rows.append([text, f"{each['per_second']:,.0f} /s{ratio}", f"p50 {each['p50_ms']:.2f} ms"])
    if "snapshot" in figures:
        floor = figures["snapshot"]["file_write_mb_per_second"]
        rows.append(["  floor: filling a new file", f"{floor:,.0f} MB/s", ""])
    if "image" in figures:
        rows.append(["  per second of processor", f"{figures['image']['per_cpu_second']:,.0f}", ""])
    for name, value in figures.get("floors", {}).items():
        rows.append([f"floor: {name}", f"{value:,.2f}", ""])
    return rows


def _failover_row(text: str, figures: Mapping[str, Any]) -> list[str]:
    spread = f"{figures['min_ms']:,.0f} to {figures['max_ms']:,.0f}"
    return [text, f"{figures['p50_ms']:,.0f} ms", spread]


def render(figures: Mapping[str, Any]) -> str:
    """Return both tables, behind a line that names what the build lacks.

    Ratios are ours by the peer's: rate above 1 and p50 below 1 are better.

    ``rounds`` is the number of rounds counted and of rounds disturbed; ``stolen`` is the largest
    steal share of the counted rounds.
    """
    form = first_line(figures.get("unoptimised", [UNKNOWN_FORM]))
    lines = [form, ""] if form else []
    if any(figures.get(part) for part in LOADS):
        lines += [*_table(_load_rows(figures)), ""]
    targets = target_rows(figures)
    if len(targets) > 1:
        lines += _table(targets)
    lines += _restart_lines(figures)
    if figures.get("scale", {}).get("images"):
        lines += ["", *_table(scale_rows(figures["scale"]))]
    others = _other_rows(figures)
    if len(others) > 1:
        lines += ["", *_table(others)]
    lines += [f"FAILED {part}: {error}" for part, error in figures.get("failed", {}).items()]
    return "\n".join(lines)


def _restart_lines(figures: Mapping[str, Any]) -> list[str]:
    """Say whose watchers were not there for every event: such a figure is not a whole one."""
    systems = {"quorate": figures, **figures["peers"]}
    return [
        f"{row['watch_restarts']} times a watcher of {name} began again at the newest state; "
        f"{row['events_missed']} events were missed"
        for name, system in systems.items()
        for row in system.get("watchers", ())
        if row.get("watch_restarts")
    ]
