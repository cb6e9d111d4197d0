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
_USER = "User:"


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


def _just_below(incomplete: str) -> str:
    """A page of names begins behind a name: behind one that is just below what is written."""
    return incomplete[:-1] + chr(ord(incomplete[-1]) - 1) + "\x7f" if incomplete else ""


def topics(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer topics of the cluster."""
    del parameter

    async def work(client: Client) -> list[str]:
        from quorate.client import LOCAL

        after = _just_below(incomplete)
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


def users(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer users that have a password."""
    del parameter
    return _offered(incomplete, _ask(context, _users_from(_just_below(incomplete))))


def principals(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer ``User:NAME`` for users that have a password, and ``User:*`` for everybody."""
    del parameter
    typed = incomplete.removeprefix(_USER) if incomplete.startswith(_USER) else ""
    names = _ask(context, _users_from(_just_below(typed)))
    return _offered(incomplete, [f"{_USER}{name}" for name in ("*", *names)])


def _users_from(after: str) -> Callable[[Client], Awaitable[list[str]]]:
    async def work(client: Client) -> list[str]:
        from quorate.client import LOCAL

        page = await client.describe_user_scram_credentials(
            after_name=after, limit=OFFERED_MAX, read=LOCAL
        )
        return [each.name for each in page.users]

    return work


def groups(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer groups that an ACL names: a cluster has no list of groups."""
    del parameter

    async def work(client: Client) -> list[str]:
        from quorate.client import LOCAL
        from quorum.v1 import commands_pb2 as wire

        wanted = wire.AclFilter(
            resource_type=wire.ACL_RESOURCE_TYPE_GROUP,
            pattern_type=wire.ACL_PATTERN_TYPE_ANY,
            operation=wire.ACL_OPERATION_ANY,
            permission_type=wire.ACL_PERMISSION_TYPE_ANY,
        )
        answer = await client.describe_acls(wanted, read=LOCAL)
        return sorted({each.resource_name for each in answer.entries} - {"*"})

    return _offered(incomplete, _ask(context, work))


ACL_RESOURCES = {"topic": topics, "group": groups, "user": users}
"""By the option of ``quorate acl`` that names one."""


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
    found = {"topic": topics, "broker": brokers, "group": groups}.get(kind)
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
