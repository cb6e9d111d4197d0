"""Sources are merged in order, every mistake is reported, and each value knows its origin."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from quorate.config.load import load_config, merge
from quorate.config.server_config import ServerConfig
from quorate.config.settings import settings
from quorum.errors import ConfigError

MINIMAL = '[node]\nid = 1\ndata_dir = "data"\n'


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "node.toml"
    file.write_text(text)
    return file


def problems_of(tmp_path: Path, text: str, **sources: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, text), **sources)  # type: ignore[arg-type]
    return caught.value.problems


def test_defaults_are_kafkas(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, MINIMAL)).config
    assert config.quorum.election_timeout_ms == 1000
    assert config.quorum.fetch_timeout_ms == 2000
    assert config.log.segment_bytes == 1 << 30
    assert config.snapshot.min_changed_records_ratio == 0.5
    assert config.snapshot.max_bytes_between == 20 << 20
    assert config.snapshot.interval_ms is None
    assert config.quorum.start_offset_lag_max_ms == 7 * 24 * 3600 * 1000


def test_later_sources_win_and_origins_name_them(tmp_path: Path) -> None:
    file = write(
        tmp_path, MINIMAL + "[quorum]\nfetch_timeout_ms = 3000\nrequest_timeout_ms = 700\n"
    )
    loaded = load_config(
        file,
        environment={
            "QUORATE__QUORUM__FETCH_TIMEOUT_MS": "4000",
            "QUORATE__NODE__ID": "5",
            "PATH": "x",
        },
        flags=["node.id=6"],
    )
    assert loaded.config.quorum.fetch_timeout_ms == 4000
    assert loaded.config.node.id == 6
    assert loaded.origins["quorum.request_timeout_ms"] == f"file {file}"
    assert (
        loaded.origins["quorum.fetch_timeout_ms"] == "environment QUORATE__QUORUM__FETCH_TIMEOUT_MS"
    )
    assert loaded.origins["node.id"] == "flag node.id"
    assert loaded.origins["log.segment_bytes"] == "default"


@pytest.mark.parametrize(
    ("written", "suggested"),
    [
        ("[quorum]\nfetch_timeout_m = 1", "did you mean quorum.fetch_timeout_ms?"),
        ("[qourum]\nfetch_timeout_ms = 1", "did you mean quorum.fetch_timeout_ms?"),
        ("[controller.quorum.fetch.timeout]\nms = 1", "here it is called quorum.fetch_timeout_ms"),
    ],
)
def test_an_unknown_key_names_the_nearest_one(tmp_path: Path, written: str, suggested: str) -> None:
    (problem,) = problems_of(tmp_path, MINIMAL + written)
    assert "unknown setting" in problem
    assert problem.endswith(suggested)


def test_unknown_variables_and_flags_are_errors_too(tmp_path: Path) -> None:
    found = problems_of(
        tmp_path,
        MINIMAL,
        environment={"QUORATE__NODE__IDD": "1"},
        flags=["node.idd=1", "nonsense"],
    )
    assert len(found) == 3
    assert (
        "environment QUORATE__NODE__IDD: unknown setting node.idd; did you mean node.id?" in found
    )


def test_every_problem_is_reported_at_once(tmp_path: Path) -> None:
    text = """
    [node]
    id = "one"
    [listeners]
    client = "nowhere"
    [quorum]
    fetch_max_wait_ms = 9000
    [cluster]
    record_codec = "xml"
    producer_window = 0
    [snapshot]
    min_changed_records_ratio = 1.5
    [tls]
    cert_file = "a.pem"
    [controller]
    purgatory_max = 0
    [logging]
    level = "loud"
    """
    text = "\n".join(line.strip() for line in text.splitlines())
    found = "\n".join(problems_of(tmp_path, text))
    for key in (
        "node.id",
        "node.data_dir",
        "listeners.client",
        "quorum.fetch_max_wait_ms",
        "cluster.record_codec",
        "cluster.producer_window",
        "snapshot.min_changed_records_ratio",
        "tls.cert_file",
        "tls.ca_file",
        "controller.purgatory_max",
        "logging.level",
    ):
        assert key in found


@pytest.mark.parametrize(
    ("line", "log_problem"),
    [
        ("id = 1.5", "must be a whole number"),
        ("id = true", "must be a whole number"),
        ("filesystem = 3", "must be a text"),
        ("id = " + "9" * 5000, "not TOML|whole number"),
    ],
)
def test_wrong_types_are_named(tmp_path: Path, line: str, log_problem: str) -> None:
    import re

    found = problems_of(tmp_path, f"[node]\n{line}\n")
    assert any(re.search(log_problem, problem) for problem in found)


def test_a_file_that_is_missing_or_not_toml(tmp_path: Path) -> None:
    assert "not TOML" in problems_of(tmp_path, "[node")[0]
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "missing.toml")


def test_lists_come_from_toml_arrays_and_from_commas(tmp_path: Path) -> None:
    file = write(tmp_path, MINIMAL + '[bootstrap]\nservers = ["a:1", "[::1]:2"]\n')
    assert load_config(file).config.bootstrap.servers == ("a:1", "[::1]:2")
    flags = ["bootstrap.servers=a:1, b:2"]
    assert load_config(file, flags=flags).config.bootstrap.servers == ("a:1", "b:2")


def test_the_controller_follows_the_cluster_section(tmp_path: Path) -> None:
    file = write(
        tmp_path, MINIMAL + '[cluster]\nrecord_codec = "kafka"\nbatch_bytes_max = 1048576\n'
    )
    config = load_config(file).config
    assert config.controller_of("abc").cluster_id == "abc"
    assert config.controller_of("abc").uses_native_codec is False
    assert config.controller_of("abc").batch_bytes_max == 1048576


def test_every_field_of_a_section_is_declared_as_a_setting_but_the_derived_ones() -> None:
    every = {
        f"{section}.{field.name}"
        for section, part in get_type_hints(ServerConfig).items()
        for field in fields(part)
    }
    assert every - set(settings()) == {
        "controller.cluster_id",
        "controller.kraft_version",
        "controller.uses_native_codec",
        "controller.producer_window",
        "controller.batch_bytes_max",
        "controller.departure_partitions_max",
    }
    assert all(each.declared.help.endswith(".") for each in settings().values())


def test_merge_alone_checks_nothing(tmp_path: Path) -> None:
    loaded, problems = merge(write(tmp_path, "[cluster]\nproducer_window = 0\n"))
    assert problems == []
    assert loaded.values["cluster.producer_window"] == 0


def test_an_optional_number_is_switched_off_with_zero(tmp_path: Path) -> None:
    file = write(tmp_path, MINIMAL + "[snapshot]\ninterval_ms = 5\n")
    assert load_config(file).config.snapshot.interval_ms == 5
    assert load_config(file, flags=["snapshot.interval_ms=0"]).config.snapshot.interval_ms is None
