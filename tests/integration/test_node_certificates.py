"""Server processes whose node ids are bound to their certificates."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes, running
from tests.support.certificates import authority, node

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]

TEMPLATE = "node-{id}.quorum.test"


def bind(cluster: Processes, folder: Path, member: LocalNode, certificate_of: int) -> None:
    """Give a node the certificate of ``certificate_of`` and the rule that ids are bound."""
    name = f"n{certificate_of}"
    member.settings = {
        "tls.cert_file": str(folder / f"{name}.pem"),
        "tls.key_file": str(folder / f"{name}.key"),
        "tls.ca_file": str(folder / "ours.pem"),
        "tls.require_client_cert": True,
        "tls.node_name": TEMPLATE,
    }
    cluster.configure(member)


def test_a_quorum_of_bound_nodes(tmp_path: Path) -> None:
    """They elect and write. With another node's certificate a node does not start. Without the
    check of its own name it starts, but every peer refuses it.
    """
    folder = tmp_path / "tls"
    folder.mkdir()
    authority(folder, "ours")
    for number in (1, 2, 3):
        node(folder, "ours", f"n{number}", f"DNS:{TEMPLATE.replace('{id}', str(number))}")
    as_client = (
        "--tls-ca", str(folder / "ours.pem"),
        "--tls-cert", str(folder / "n1.pem"), "--tls-key", str(folder / "n1.key"),
    )  # fmt: skip
    with running(tmp_path, starts=False) as cluster:
        for member in cluster.voters:
            bind(cluster, folder, member, member.id)
        cluster.start_all()
        leader = cluster.leader()
        addresses = ",".join(cluster.addresses)
        cluster.command(
            "config", "set", "broker", "", "log.retention.ms=7",
            "--bootstrap", addresses, *as_client,
        )  # fmt: skip
        for member in cluster.voters:
            assert cluster.metric(member, "quorate_raft_impostors_refused") == 0

        victim = next(member for member in cluster.voters if member is not leader)
        cluster.stop(victim)
        bind(cluster, folder, victim, leader.id)
        ended = cluster.serve(victim)
        assert ended.status == 2
        assert f"no subject alternative name node-{victim.id}.quorum.test" in ended.err

        # A stranger that has the leader's certificate and does not check names itself.
        del victim.settings["tls.node_name"]
        cluster.configure(victim)
        cluster.start(victim)
        cluster.until(
            "a refusal",
            lambda: (cluster.metric(leader, "quorate_raft_impostors_refused") or 0) > 0,
        )
        cluster.until_logged(leader, f"the caller claims to be node {victim.id}")
        assert not cluster.is_ready(victim)

        cluster.stop(victim)
        bind(cluster, folder, victim, victim.id)
        cluster.start(victim)
        cluster.wait_ready([victim])
