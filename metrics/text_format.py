"""The page of ``/metrics``: Prometheus' text format 0.0.4, or OpenMetrics 1.0.0 on request.

The library's own encoder of the text format is in a module that loads HTTP servers and clients.
Created times are left out: each would be a series of its own, and the process has one start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPENMETRICS: Final = "application/openmetrics-text"

Encode: TypeAlias = Callable[[CollectorRegistry], bytes]


def choose_encoder(accept: str) -> tuple[Encode, str]:
    """Return the encoder for an ``Accept`` header, and the content type of what it returns."""
    kinds = (each.partition(";")[0].strip() for each in accept.split(","))
    if _OPENMETRICS in kinds:
        return _encode_openmetrics, OPENMETRICS_TYPE
    return encode_text, TEXT_TYPE


def encode_text(registry: CollectorRegistry) -> bytes:
    """Return the page in the text format."""
    return "".join(line for metric in registry.collect() for line in _lines(metric)).encode()


def _encode_openmetrics(registry: CollectorRegistry) -> bytes:
    encoded: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
    return encoded


def _lines(metric: Metric) -> Iterator[str]:
    # OpenMetrics names the family of a counter without the suffix of its samples.
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    text = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {name} {text}\n# TYPE {name} {metric.type}\n"
    created = f"{metric.name}_created"
    for sample in metric.samples:
        if sample.name != created:
            value: str = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
            yield f"{sample.name}{_labels(sample)} {value}\n"


def _labels(sample: Sample) -> str:
    if not sample.labels:
        return ""
    return "{" + ",".join(f'{k}="{_escape(v)}"' for k, v in sorted(sample.labels.items())) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
