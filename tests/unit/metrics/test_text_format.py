"""Our encoder of the text format writes what the library's does."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client import metrics as library
from prometheus_client.exposition import generate_latest

from metrics.families import Families
from metrics.process_metrics import register_process_metrics
from metrics.text_format import OPENMETRICS_TYPE, TEXT_TYPE, choose_encoder, encode_text


def test_the_page_is_the_library_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_use_created", False)
    registry = CollectorRegistry()
    Families(registry).count("quorate_raft_leader_lost_total")
    Gauge("g", "back\\slash\nand line", ["b", "a"], registry=registry).labels(
        'quote " \\ \n', "é"
    ).set(float("inf"))
    Histogram("h", "times", registry=registry).observe(0.25)
    page = encode_text(registry)
    assert page == generate_latest(registry)
    assert b"quorate_raft_leader_lost_total 1.0" in page


def test_created_times_are_left_out() -> None:
    registry = CollectorRegistry()
    Histogram("h", "times", registry=registry).observe(1)
    register_process_metrics(registry)
    page = encode_text(registry)
    assert b"_created" not in page
    assert b"python_info{" in page


def test_openmetrics_is_chosen_by_its_name_alone() -> None:
    accepts = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4"
    assert choose_encoder(accepts)[1] == OPENMETRICS_TYPE
    assert choose_encoder("text/plain;version=1.0.0")[1] == TEXT_TYPE
    assert choose_encoder("")[1] == TEXT_TYPE
