"""Every node that is known is asked for itself, and says what it knows, or why it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from quorate import client as library
from quorate.cli.connection import client_of
from quorate.cli.patience import UnreachableError, unless_unreachable
from quorate.cli.reachability import SERVES_NO_CLIENTS
from quorate.cli.session import Session
from quorate.client.node_addresses import address_of
from quorate.client.results.admin import DescribeQuorumResponse

ASKED_MAX = 20
"""Addresses that are asked at the same time, at most."""
LIMIT_S = 2.0
"""How long each of them may take."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What came back from one address: an answer, or in words why there is none."""

    address: str
    answer: DescribeQuorumResponse | None
    failure: str = ""
    refusal: int = 0
    """The error code of a node that answered, and refused; 0 otherwise."""


async def ask_each(session: Session, addresses: Iterable[str]) -> list[Asked]:
    """Ask each address which quorum it sees, all at the same time; in order of the addresses."""
    places = asyncio.Semaphore(ASKED_MAX)

    async def one(address: str) -> Asked:
        async with places:
            return await _asked(session, address)

    return list(await asyncio.gather(*(one(address) for address in addresses)))


async def ask_all(session: Session, servers: Collection[str]) -> list[Asked]:
    """Ask the servers, then the other nodes that these know, each by its clients' address."""
    first = await ask_each(session, servers)
    seen = {each.answer.node_id for each in first if each.answer is not None}
    further: dict[int, str] = {}
    for each in first:
        if each.answer is not None:
            further |= addresses_of(each.answer, is_sasl=session.is_sasl)
    rest = sorted({further[node] for node in further.keys() - seen} - set(servers))
    return first + await ask_each(session, rest)


def addresses_of(answer: DescribeQuorumResponse, *, is_sasl: bool = False) -> dict[int, str]:
    """Where clients reach the nodes that an answer names, as far as it says; see ``address_of``.

    Of nodes with a listener for peers alone, only the leader's address for clients is known.
    """
    found = {node.node_id: address_of(node, is_sasl=is_sasl) for node in answer.nodes}
    return {node_id: address for node_id, address in found.items() if address}


async def _asked(session: Session, address: str) -> Asked:
    try:
        async with asyncio.timeout(LIMIT_S), client_of(session, (address,)) as there:
            question = there.describe_quorum(from_leader=False)
            return Asked(
                address, await unless_unreachable(session, (address,), question, patience_s=0)
            )
    except UnreachableError as error:
        return Asked(address, None, error.obstacles[address].cause)
    except TimeoutError:
        return Asked(address, None, f"no answer within {LIMIT_S:g} s")
    except library.NotServedError:
        return Asked(address, None, SERVES_NO_CLIENTS.cause)
    except library.RefusedError as error:
        return Asked(address, None, str(error), error.code)
    except library.ClientError as error:
        return Asked(address, None, str(error))
