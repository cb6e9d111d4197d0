"""``tracing.*``: where the spans of commands go, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.setting import Range, out_of_range, setting


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """OpenTelemetry traces of commands; off without an endpoint."""

    otlp_endpoint: str = setting(
        "",
        "URL that spans are sent to by OTLP over HTTP, as http://collector:4318/v1/traces; empty: "
        "no traces. Needs the extra `otel`.",
    )
    sample_ratio: float = setting(
        0.01,
        "Share of commands without a trace that begin one; others follow their client.",
        Range(0, 1),
    )

    def problems(self) -> list[str]:
        """Every impossible setting, one sentence each."""
        found = out_of_range(self, "tracing.")
        if self.otlp_endpoint and not self.otlp_endpoint.startswith(("http://", "https://")):
            found.append(
                f"tracing.otlp_endpoint must be an http(s) URL, not {self.otlp_endpoint!r}"
            )
        return found
