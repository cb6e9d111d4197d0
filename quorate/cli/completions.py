"""Words that a shell may offer for an argument: names of the cluster, of contexts, of settings.

A shell waits for them at each key, so the cluster is asked for a second at most, any node will do,
and whatever goes wrong offers nothing. Nothing is loaded before a word is completed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from quorate.cli.session import Session

if TYPE_CHECKING:
    from quorate.client import Client

SECONDS_MAX = 1.0
OFFERED_MAX = 200


def _offered(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)][:OFFERED_MAX]


def _ask(context: click.Context, work: Callable[[Client], Awaitable[list[str]]]) -> list[str]:
    from quorate.cli.connection import ask

    session = context.find_object(Session) or Session()
    try:
        session.take_from_context()
        session.timeout_s = SECONDS_MAX
        session.written.discard("timeout_s")
        return ask(session, work)
    except Exception:  # noqa: BLE001 - a shell shows an error in the middle of the line
        return []


def topics(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer topics of the cluster."""
    del parameter

    async def work(client: Client) -> list[str]:
        from quorate.client import LOCAL

        # The page begins behind a name: behind one that is just below what is written.
        after = incomplete[:-1] + chr(ord(incomplete[-1]) - 1) + "\x7f" if incomplete else ""
        page = await client.list_topics(after_name=after, limit=OFFERED_MAX, read=LOCAL)
        return [each.name for each in page.topics]

    return _offered(incomplete, _ask(context, work))


def brokers(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the ids of registered brokers."""
    del parameter

    async def work(client: Client) -> list[str]:
        from quorate.client import LOCAL

        answer = await client.describe_cluster(read=LOCAL)
        return [str(each.broker_id) for each in answer.brokers]

    return _offered(incomplete, _ask(context, work))


def nodes(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the ids of voters and observers."""
    del parameter

    async def work(client: Client) -> list[str]:
        answer = await client.describe_quorum(from_leader=False)
        ids = {each.replica_id for each in (*answer.voters, *answer.observers)}
        return [str(each) for each in sorted(ids)]

    return _offered(incomplete, _ask(context, work))


def features(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer ``NAME=`` for every feature of this release."""
    del context, parameter
    from statemachine.feature_levels import RELEASES

    return _offered(incomplete, (f"{name}=" for name in sorted(RELEASES)))


def contexts(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the names of contexts."""
    del context, parameter
    from quorate.cli.contexts import contexts_path, load_contexts
    from quorate.cli.exits import CliError

    try:
        return _offered(incomplete, sorted(load_contexts(contexts_path()).by_name))
    except CliError:
        return []


def settings(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer ``SECTION.KEY=`` for every setting of a node."""
    del context, parameter
    from quorate.config.settings import settings as known

    return _offered(incomplete, (f"{key}=" for key in known()))


def config_resources(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer what has a dynamic configuration, of the type that is written before it."""
    kind = str(context.params.get("resource_type") or "")
    found = {"topic": topics, "broker": brokers}.get(kind)
    return found(context, parameter, incomplete) if found is not None else []


def config_keys(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer keys of the resource type that is written before; with ``=`` where a value follows."""
    from statemachine.commands import ResourceType
    from statemachine.config_catalog import CATALOG

    kind = str(context.params.get("resource_type") or "").replace("-", "_").upper()
    known = CATALOG.get(int(ResourceType[kind]), {}) if kind in ResourceType.__members__ else {}
    end = "=" if parameter.name == "pairs" else ""
    return _offered(incomplete, (f"{key}{end}" for key in sorted(known)))
