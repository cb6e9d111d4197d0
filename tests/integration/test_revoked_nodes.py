"""Server processes, one of which has a certificate that the others' lists name as revoked.

Both carriers, and both directions of each pair: the streams that the node has opened, and those
that the others have opened to it. The node itself knows of no revocation and does not cooperate.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from quorate.certificates.authority import Authority, make_authority
from quorate.certificates.names import Kind
from quorate.demo.local_cluster import LocalNode
from quorate.demo.ports import free_ports
from tests.integration.processes import Processes, running
from tests.support.revoked_list import write_list

pytestmark = pytest.mark.integration

NODE_NAME: Final = "node-{id}.quorum.test"
GRPC, TCP = "grpc", "tcp"
REVOKED: Final = "the certificate is revoked"
HIGH_WATERMARK: Final = "quorate_raft_high_watermark"
# A list beyond its end serves gRPC only, and this one must do for both.
DAYS: Final = 36_500


def certificates(folder: Path) -> None:
    """One for each node and the operator; and a list for each node, which names nobody."""
    now_ms = int(time.time() * 1000)
    make_authority(
        folder, title="ours", node_name=NODE_NAME, observer_name="observer-{id}.quorum.test",
        days=99, now_ms=now_ms,
    )  # fmt: skip
    ours = Authority(folder)
    for number in (1, 2, 3):
        ours.issue(Kind.VOTER, str(number), ("127.0.0.1",), days=9, now_ms=now_ms)
        write_list(folder, name=f"crl-{number}.pem", days=DAYS)
    ours.issue(Kind.OPERATOR, "admin.test", (), days=9, now_ms=now_ms)


def settings(folder: Path, member: LocalNode, carrier: str) -> dict[str, object]:
    found: dict[str, object] = {
        "security.mode": "bound",
        "security.operators": ["User:admin.test"],
        "tls.cert_file": str(folder / f"voter-{member.id}.pem"),
        "tls.key_file": str(folder / f"voter-{member.id}.key"),
        "tls.ca_file": str(folder / "ca.pem"),
        "tls.crl_file": str(folder / f"crl-{member.id}.pem"),
        "tls.require_client_cert": True,
        "tls.node_name": NODE_NAME,
    }
    if carrier == TCP:
        found["listeners.peer_tcp"] = f"127.0.0.1:{free_ports(1)[0]}"
    return found


def logs(member: LocalNode) -> str:
    return member.log_path.read_text(errors="replace")


@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
@pytest.mark.parametrize("carrier", [GRPC, TCP])
def test_a_revoked_node_is_out_of_the_quorum(tmp_path: Path, carrier: str, leads: bool) -> None:
    """Both others end their streams to it and its streams to them; nobody is restarted.

    A leader is succeeded: nobody fetches from it any more. It gets no further record.
    """
    folder = tmp_path / "tls"
    folder.mkdir(mode=0o700)
    certificates(folder)
    with running(tmp_path, starts=False) as cluster:
        for member in cluster.voters:
            member.settings = settings(folder, member, carrier)
            cluster.configure(member)
        cluster.start_all()
        leader = cluster.leader()
        lost = leader if leads else next(each for each in cluster.voters if each is not leader)
        others = [each for each in cluster.voters if each is not lost]
        for member in cluster.voters:
            cluster.until(
                "streams of the carrier",
                lambda member=member: has_moved(cluster, member) is (carrier == TCP),
            )
        write(cluster, folder, others, "1")
        for member in others:
            write_list(
                folder, folder / f"voter-{lost.id}.pem", name=f"crl-{member.id}.pem", days=DAYS
            )
        for member in others:
            cluster.until_logged(member, "event=certificate_revoked address=ipv4:127.0.0.1")
        # A follower needs no stream to another follower.
        for member in others if leads else [leader]:
            cluster.until(
                "an ended stream to the revoked node",
                lambda member=member: f"peer {lost.id}: {lost.address}: {REVOKED}" in logs(member),
            )
        cluster.until("a leader among the others", lambda: leads_among(cluster, others))
        write(cluster, folder, others, "2")
        reached = cluster.metric(lost, HIGH_WATERMARK)
        write(cluster, folder, others, "3")
        for member in others:
            cluster.until(
                "the last write",
                lambda member=member: (cluster.metric(member, HIGH_WATERMARK) or 0) > reached,
            )
        assert cluster.metric(lost, HIGH_WATERMARK) == reached


def has_moved(cluster: Processes, member: LocalNode) -> bool:
    return (cluster.metric(member, "quorate_raft_tcp_connects_total") or 0) > 0


def leads_among(cluster: Processes, members: list[LocalNode]) -> bool:
    return any(cluster.metric(each, "quorate_raft_can_write") == 1 for each in members)


def write(cluster: Processes, folder: Path, members: list[LocalNode], value: str) -> None:
    cluster.command(
        "config", "set", "broker", "", f"log.retention.ms={value}",
        "--bootstrap", ",".join(each.address for each in members),
        "--tls-ca", str(folder / "ca.pem"),
        "--tls-cert", str(folder / "admin.test.pem"),
        "--tls-key", str(folder / "admin.test.key"),
    )  # fmt: skip
