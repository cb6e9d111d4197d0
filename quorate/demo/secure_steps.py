"""The step of a secured demo: a user gets a password and rights, and everything else is refused."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Final

from quorate.demo.local_cluster import ClusterError, LocalCluster
from quorate.demo.security import USER, ClusterSecurity, write_secret
from quorate.demo.stage import Stage

_UNAUTHORIZED: Final = 401
_RIGHTS: Final = (
    (("create", "describe", "cluster-action"), ("--cluster",)),
    (("describe", "alter-configs"), ("--topic", "*")),
)
"""What brokers and administrators of topics do."""


class SecureSteps:
    """Gives rights by commands of the operator, and shows that they are needed."""

    def __init__(self, cluster: LocalCluster, security: ClusterSecurity, stage: Stage) -> None:
        self._cluster = cluster
        self._security = security
        self._stage = stage

    def give_rights(self) -> None:
        """Add the user whose password the demo's programs prove, and its ACLs."""
        reason = ("--reason", "the demo's programs")
        password = str(self._security.password_file)
        self._operator("user", "add", USER, "--new-password-file", password, *reason)
        for operations, resource in _RIGHTS:
            wanted = [word for each in operations for word in ("--operation", each)]
            self._operator("acl", "add", f"User:{USER}", *wanted, *resource, *reason)
        self._stage.announce("quorate acl list")
        self._stage.show(self._operator("acl", "list"))

    def show_refusals(self) -> None:
        """Try what nobody but the operator may do, and what nobody at all may do.

        Raises:
            ClusterError: It was allowed, or refused for another reason.
        """
        sasl = ",".join(self._cluster.user_addresses)
        self._refused(
            f"user {USER} gives itself the rights of an operator",
            ("acl", "add", f"User:{USER}", "--operation", "all", "--cluster"),
            ("--bootstrap", sasl, *self._security.user_options),
            "CLUSTER_AUTHORIZATION_FAILED",
        )
        guess = self._security.password_file.with_name("a-guess.password")
        write_secret(guess, "a guess")
        options = ("--tls-ca", str(self._security.authorities), "--sasl-user", USER)
        self._refused(
            "a wrong password",
            ("topic", "list"),
            ("--bootstrap", sasl, *options, "--sasl-password-file", str(guess)),
            "unknown user or wrong password",
        )
        self._refused(
            "no certificate and no password",
            ("topic", "list"),
            ("--bootstrap", sasl, "--tls-ca", str(self._security.authorities)),
            "authenticate first",
        )
        self._refused_scrape()

    def _operator(self, *arguments: str) -> str:
        addresses = ",".join(self._cluster.addresses)
        return self._cluster.command(*arguments, "--bootstrap", addresses)

    def _refused(self, what: str, command: Sequence[str], by: Sequence[str], why: str) -> None:
        try:
            self._cluster.command(*command, *by, is_operator=False)
        except ClusterError as error:
            if why not in str(error):
                raise
            self._stage.announce(f"{what}: refused, {why}")
        else:
            raise ClusterError(f"{what}: was allowed")

    def _refused_scrape(self) -> None:
        node = self._cluster.nodes[1]
        try:
            with urllib.request.urlopen(
                f"https://{node.metrics_address}/metrics",
                timeout=5,
                context=self._security.metrics_context,
            ):
                pass
        except urllib.error.HTTPError as error:
            if error.code != _UNAUTHORIZED:
                raise
            self._stage.announce(f"a scrape of the metrics without token: refused, {error.code}")
        else:
            raise ClusterError("a scrape without token: was allowed")
