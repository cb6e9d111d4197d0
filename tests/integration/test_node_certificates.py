"""Server processes whose node ids are bound to their certificates."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quorate.demo.local_cluster import LocalNode
from tests.integration.processes import Processes, running
from tests.support.certificates import authority, caller, node

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]

TEMPLATE = "node-{id}.quorum.test"


def bind(cluster: Processes, folder: Path, member: LocalNode, certificate_of: int) -> None:
    """Give a node the certificate of ``certificate_of`` and the rule that ids are bound."""
    name = f"n{certificate_of}"
    member.settings = {
        "security.mode": "bound",
        "security.operators": ["User:admin.test"],
        "tls.cert_file": str(folder / f"{name}.pem"),
        "tls.key_file": str(folder / f"{name}.key"),
        "tls.ca_file": str(folder / "ours.pem"),
        "tls.require_client_cert": True,
        "tls.node_name": TEMPLATE,
    }
    cluster.configure(member)


def test_a_quorum_of_bound_nodes(tmp_path: Path) -> None:
    """They elect, and only the operator writes. With another node's certificate a node does not
    start. Without the check of its own name it starts, but every peer refuses it.
    """
    folder = tmp_path / "tls"
    folder.mkdir()
    authority(folder, "ours")
    for number in (1, 2, 3):
        node(folder, "ours", f"n{number}", f"DNS:{TEMPLATE.replace('{id}', str(number))}")
    caller(folder, "ours", "admin", "DNS:admin.test")
    caller(folder, "ours", "app", "DNS:app.test")

    def shows(name: str) -> tuple[str, ...]:
        files = (
            ("--tls-ca", "ours.pem"),
            ("--tls-cert", f"{name}.pem"),
            ("--tls-key", f"{name}.key"),
        )
        return tuple(each for option, file in files for each in (option, str(folder / file)))

    with running(tmp_path, starts=False) as cluster:
        for member in cluster.voters:
            bind(cluster, folder, member, member.id)
        cluster.start_all()
        leader = cluster.leader()
        addresses = ",".join(cluster.addresses)
        write = ("config", "set", "broker", "", "log.retention.ms=7", "--bootstrap", addresses)
        cluster.command(*write, *shows("admin"))
        for name, cause in (("app", "acl"), ("n1", "role")):
            refused = cluster.run(*write, *shows(name))
            assert refused.status == 6, refused.err
            assert "CLUSTER_AUTHORIZATION_FAILED" in refused.err
            cluster.until_logged(leader, f"cause={cause} what=")
        cluster.command(
            "acl", "add", "User:app.test", "--operation", "alter-configs", "--cluster",
            "--bootstrap", addresses, *shows("admin"),
        )  # fmt: skip
        cluster.command(*write, *shows("app"))
        for member in cluster.voters:
            assert cluster.metric(member, "quorate_raft_impostors_refused_total") == 0

        victim = next(member for member in cluster.voters if member is not leader)
        cluster.stop(victim)
        bind(cluster, folder, victim, leader.id)
        ended = cluster.serve(victim)
        assert ended.status == 2
        assert f"no subject alternative name node-{victim.id}.quorum.test" in ended.err

        # A stranger that has the leader's certificate and does not check names itself.
        del victim.settings["tls.node_name"]
        victim.settings["security.mode"] = "tls"
        cluster.configure(victim)
        cluster.start(victim)
        cluster.until(
            "a refusal",
            lambda: (cluster.metric(leader, "quorate_raft_impostors_refused_total") or 0) > 0,
        )
        cluster.until_logged(leader, f"the caller claims to be node {victim.id}")
        assert not cluster.is_ready(victim)

        cluster.stop(victim)
        bind(cluster, folder, victim, victim.id)
        cluster.start(victim)
        cluster.wait_ready([victim])
