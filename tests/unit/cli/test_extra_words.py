"""A word too many is answered with the option that it belongs to."""

from __future__ import annotations

import pytest

from quorate.cli.main import main


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("acl remove User:x", "(User:x). Write --principal User:x"),
        ("acl remove User:*", "(User:*). Write --principal 'User:*'"),
        ("acl list User:x --topic t", "(User:x). Write --principal User:x"),
        ("acl list READ", "(READ). Write --operation READ"),
        ("acl add User:x orders", "Write --topic orders, --group orders, "),
        ("acl list read", "(read). Write --operation read"),
        ("acl list Deny", "(Deny). Write --permission Deny"),
        ("user add alice SCRAM-SHA-256", "(SCRAM-SHA-256). Write --mechanism SCRAM-SHA-256"),
        ("user add alice scram-sha-256", "(scram-sha-256). Write --mechanism SCRAM-SHA-256"),
        ("user add alice 8192", "(8192). Write --iterations 8192"),
        ("user add alice 3", "extra argument (3)"),
        ("quorum may-stop 1 2.5", "(2.5). Write --wait 2.5"),
        ("topic create orders 2.5", "extra argument (2.5)"),
        ("topic create orders 3", "(3). Write --partitions 3 or --replication-factor 3"),
        ("broker list 3", "extra argument (3)"),
        ("broker list User:x", "extra argument (User:x)"),
        ("health localhost", "(localhost). Write --bootstrap localhost:PORT"),
        ("health node-1.example", "(node-1.example). Write --bootstrap node-1.example:PORT"),
        ("top node1:9090,node2:9090", "Write --bootstrap node1:9090,node2:9090"),
        ("health [::1]:9090", "([::1]:9090). Write --bootstrap '[::1]:9090'"),
        ("topic create orders node1:9090", "(node1:9090). Write --bootstrap node1:9090"),
        ("acl list User:7", "(User:7). Write --principal User:7"),
        ("health 3", "extra argument (3)"),
        ("version node1:9090", "extra argument (node1:9090)"),
        ("user list a b", "extra arguments (a b)"),
        ("version x", "extra argument (x)"),
    ],
)
def test_the_option_is_named(command: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    problem = capsys.readouterr().err.splitlines()[-1]
    assert problem.startswith("Error: Got unexpected extra argument")
    assert hint in problem
    if "Write" not in hint:
        assert problem.endswith(")")
    elif "--host" not in problem:
        assert problem.endswith(hint)
