"""Names in certificates: nobody but a node gets a node's name."""

from __future__ import annotations

import pytest

from quorate.certificates.errors import CertificateNameError
from quorate.certificates.names import Kind, caller_names, checked_node_names, node_names

NAMES = checked_node_names("node-{id}.quorate.internal", "observer-{id}.quorate.internal")


def test_the_first_name_is_the_nodes_own() -> None:
    assert node_names(NAMES, Kind.VOTER, "07", ("::1", "h.example")) == (
        "node-7.quorate.internal",
        "::1",
        "h.example",
    )
    assert node_names(NAMES, Kind.OBSERVER, "4", ())[0] == "observer-4.quorate.internal"
    assert caller_names(NAMES, "app.example", ("10.0.0.1",)) == ("app.example", "10.0.0.1")


@pytest.mark.parametrize(
    "name",
    [
        "node-3.quorate.internal",
        "NODE-3.Quorate.Internal",
        "observer-12.quorate.internal",
        "*.quorate.internal",
        "",
        "a b",
        "a..b",
        "-a",
        "a/b",
        "../ca",
        "x" * 64,
        "ä.example",
        "app.example\n",
    ],
)
def test_refused_as_a_caller_and_as_a_host(name: str) -> None:
    with pytest.raises(CertificateNameError):
        caller_names(NAMES, name, ())
    with pytest.raises(CertificateNameError):
        caller_names(NAMES, "app.example", (name,))
    with pytest.raises(CertificateNameError):
        node_names(NAMES, Kind.VOTER, "1", (name,))


def test_a_client_is_not_its_address() -> None:
    with pytest.raises(CertificateNameError, match="address"):
        caller_names(NAMES, "127.0.0.1", ())


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "²", str(1 << 31)])
def test_a_node_has_a_number(text: str) -> None:
    with pytest.raises(CertificateNameError, match="node id"):
        node_names(NAMES, Kind.VOTER, text, ())


@pytest.mark.parametrize(
    ("voter", "observer"),
    [
        ("node.example", "observer-{id}.example"),
        ("{id}-{id}.example", "observer-{id}.example"),
        ("*.{id}.example", "observer-{id}.example"),
        ("n-{id}.example", "n-{id}.example"),
        ("n{id}.example", "n1{id}.example"),
    ],
)
def test_names_of_nodes_that_are_refused(voter: str, observer: str) -> None:
    """The last: the observer 1 would have the name of the voter 11."""
    with pytest.raises(CertificateNameError):
        checked_node_names(voter, observer)
