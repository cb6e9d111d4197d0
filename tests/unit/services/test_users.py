"""Users are described by name and mechanism; credentials and the decoy are never shown."""

from __future__ import annotations

import asyncio
from typing import Any

from quorate.client import Client, scram_upsertion
from quorum.errors import ErrorCode
from statemachine.codec import encode_record
from statemachine.prepare.scram import DECOY
from statemachine.records import UserScramCredentialRecord
from tests.support.served_node import cluster, serving


def credential(name: str, mechanism: int, iterations: int = 4096) -> bytes:
    keys = b"k" * 32, b"v" * 32
    return encode_record(UserScramCredentialRecord(name, mechanism, b"salt", *keys, iterations))


def test_users_are_listed_by_page_and_described_by_name() -> None:
    async def run() -> None:
        _, (node,) = cluster(1)
        node.commit(credential(*DECOY), credential("b", 2, 8192), credential("b", 1))
        node.commit(*(credential(name, 1) for name in ("d", "a", "c")))
        async with serving(node), Client([node.address]) as client:
            seen: list[str] = []
            while True:
                page = await client.describe_user_scram_credentials(
                    after_name=seen[-1] if seen else "", limit=2
                )
                seen += [each.name for each in page.users]
                if not page.has_more:
                    break
                assert len(page.users) == 2
            assert seen == ["a", "b", "c", "d"]
            found = await client.describe_user_scram_credentials(["b", "none", DECOY[0]])
            shown: list[Any] = [
                (
                    each.name,
                    [(int(one.mechanism), one.iterations) for one in each.credentials],
                    int(each.error_code),
                )
                for each in found.users
            ]
            missing = int(ErrorCode.RESOURCE_NOT_FOUND)
            assert shown == [
                ("b", [(1, 4096), (2, 8192)], 0),
                ("none", [], missing),
                ("", [], missing),
            ]
            assert b"salt" not in found.to_message().SerializeToString()

    asyncio.run(run())


def test_a_new_credential_has_a_new_salt_and_no_password() -> None:
    first, second = scram_upsertion("u", "pencil"), scram_upsertion("u", "pencil")
    assert first.salt != second.salt
    assert len(first.salt) == 32
    assert b"pencil" not in first.SerializeToString()
