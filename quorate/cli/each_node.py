"""Every node that is known is asked for itself, and says what it knows, or why it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from quorate import client as library
from quorate.cli.connection import client_of
from quorate.cli.patience import UnreachableError, unless_unreachable
from quorate.cli.reachability import SERVES_NO_CLIENTS
from quorate.cli.session import Session
from quorate.client.node_addresses import address_of, likely_addresses
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
    """Ask the servers, then the other nodes that these know, each by its clients' address.

    Where only the peers' address of a node is known, it is asked at its likely one for clients.
    """
    first = await ask_each(session, servers)
    answers = [each.answer for each in first if each.answer is not None]
    seen = {each.node_id for each in answers}
    further: dict[int, str] = {}
    guessed: dict[str, tuple[int, str]] = {}
    for answer in answers:
        found = likely_addresses(answer, is_sasl=session.is_sasl)
        likely = {node: place for node, place in found.items() if place}
        guessed |= {place: (node, answer.cluster_id) for node, place in likely.items()}
        further |= {**addresses_of(answer, is_sasl=session.is_sasl), **likely}
    rest = sorted({further[node] for node in further.keys() - seen} - set(servers))
    return first + [_checked(each, guessed) for each in await ask_each(session, rest)]


def _checked(asked: Asked, guessed: Mapping[str, tuple[int, str]]) -> Asked:
    """Return what came back; without the answer of another node than was expected at a guess."""
    answer, expected = asked.answer, guessed.get(asked.address)
    if answer is None or expected in (None, (answer.node_id, answer.cluster_id)):
        return asked
    return Asked(asked.address, None, "another node answers there")


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
