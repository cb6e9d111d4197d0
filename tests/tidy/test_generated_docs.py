"""Tables, examples and the role diagram in the documents match the code.

After a change of record types, codes, tags, file names or messages:
``pytest tests/tidy/test_generated_docs.py --rewrite``, then read the diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.log import layout
from quorum.transport import packing
from snapshot.naming import FileState
from statemachine.records import OWN_API_KEY_MIN, RECORD_TYPES
from tests.evidence import page
from tests.support import (
    doc_answers,
    doc_client,
    doc_coverage,
    doc_examples,
    doc_formats,
    doc_metrics,
    doc_protocol,
    doc_settings,
    doc_simulation,
)
from tests.support.doc_regions import region_names, rendered

ROOT = Path(__file__).resolve().parents[2]
MAKERS: dict[str, Callable[[], str]] = {
    **doc_formats.MAKERS,
    **doc_examples.MAKERS,
    **doc_metrics.MAKERS,
    **doc_protocol.MAKERS,
    **doc_settings.MAKERS,
    **page.MAKERS,
    **doc_answers.MAKERS,
    **doc_client.MAKERS,
    **doc_coverage.MAKERS,
    **doc_simulation.MAKERS,
}
DOCUMENTS = {
    path: names
    for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("qu*/**/DESIGN.md")])
    if (names := region_names(path.read_text(encoding="utf-8")))
}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_fresh(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    expected = rendered(text, MAKERS)
    if request.config.getoption("--rewrite"):
        path.write_text(expected, encoding="utf-8")
        return
    assert text == expected


def test_everything_that_can_be_generated_is_in_a_document() -> None:
    shown = [name for names in DOCUMENTS.values() for name in names]
    assert sorted(shown) == sorted(MAKERS)


def test_a_region_that_is_stale_is_seen() -> None:
    text = "a\n<!-- generated: tagged-fields -->\n| Tag | 20003 |\n<!-- end -->\nb\n"
    fresh = rendered(text, MAKERS)
    assert fresh != text
    assert "20001" in fresh
    assert rendered(fresh, MAKERS) == fresh
    assert fresh.startswith("a\n")
    assert fresh.endswith("<!-- end -->\nb\n")


def test_every_file_name_of_a_partition_directory_is_documented() -> None:
    names = [value for name, value in vars(layout).items() if name.endswith(("_NAME", "_SUFFIX"))]
    assert len(names) >= 10
    shown = doc_formats.files() + doc_formats.file_endings()
    for name in [*names, *(state.value for state in FileState)]:
        assert name in shown


def test_every_record_type_is_in_one_of_the_tables() -> None:
    for key in RECORD_TYPES:
        own, kafka = doc_formats.own_record_types(), doc_formats.kafka_record_types()
        assert (f"\n| {key} |" in own) is (key >= OWN_API_KEY_MIN)
        assert (f"\n| {key} |" in kafka) is (key < OWN_API_KEY_MIN)


def test_the_frame_table_adds_up_to_the_packed_layouts() -> None:
    text = (ROOT / "quorum" / "transport" / "DESIGN.md").read_text(encoding="utf-8")
    sizes = {
        packing.FETCH_REQUEST: packing._FETCH_REQUEST.size,
        packing.FETCH_RESPONSE: packing._FETCH_RESPONSE.size,
        packing.FETCH_SNAPSHOT_REQUEST: packing._SNAPSHOT_REQUEST.size,
        packing.FETCH_SNAPSHOT_RESPONSE: packing._SNAPSHOT_RESPONSE.size,
    }
    for kind, size in sizes.items():
        row = next(line for line in text.split("\n") if line.startswith(f"| {kind:02x} |"))
        numbers = re.findall(r"\bu?(\d+)\b", row.split("|")[3])
        assert sum(map(int, numbers)) + packing.HEADER.size == size, row


def test_every_message_of_the_wire_is_listed() -> None:
    from quorum.v1 import (
        admin_pb2,
        commands_pb2,
        common_pb2,
        errors_pb2,
        metadata_pb2,
        raft_pb2,
    )

    shown = "\n\n".join(map(doc_protocol.messages, doc_protocol.FILES))
    for module in (admin_pb2, commands_pb2, common_pb2, errors_pb2, metadata_pb2, raft_pb2):
        for name, descriptor in module.DESCRIPTOR.message_types_by_name.items():
            section = shown.split(f"### {name}\n")[1].split("\n##")[0]
            for each in descriptor.fields:
                assert f"| {each.number} | `{each.name}` |" in section, (name, each.name)
