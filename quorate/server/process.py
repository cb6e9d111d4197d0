"""A server process: open, listen, run until a stop is requested, transfer leadership, close.

Wiring only; every decision is made elsewhere. Exit codes are those of the command line: 0 for
a clean stop, 1 for a failure, 8 when the disk cannot be trusted: at the start, later, or while
the node stops. A second stop signal ends the process with 1, or with the code of a failure so far.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import random
import secrets
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from prometheus_client import disable_created_metrics

from quorate.cli.exits import Exit, hint_for
from quorate.config.load import LoadedConfig
from quorate.config.security import INSECURE
from quorate.config.server_config import ServerConfig
from quorate.logs import configure_logging
from quorate.server.boot_report import log_boot
from quorate.server.cycle_collection import CycleCollection
from quorate.server.ending import Ending, trace_of
from quorate.server.guest import Guest, GuestRun
from quorate.server.huge_pages import move_to_huge_pages
from quorate.server.node import ServerNode
from quorate.server.reload import Reload
from quorate.server.service_manager import READY, STOPPING, ServiceManager, Watchdog
from quorate.server.start_pages import release_start_pages
from quorate.server.stop_signals import StopSignals
from quorate.visible_text import visible
from quorum.errors import ConfigError, IdentityError, StorageError
from quorum.log.descriptor_reserve import DescriptorReserve
from quorum.log.directory_lock import DirectoryLock
from quorum.log.filesystem import OsFileSystem
from quorum.ports import FileSystem

_log = logging.getLogger("quorate.server")

_RELEASE_S = 3.0
"""From the start of a node to the release of what only the start needed: connections to the peers
and a first election touch much of gRPC, too."""


def run(loaded: LoadedConfig, load: Callable[[], LoadedConfig], guest: Guest | None = None) -> int:
    """Run one node in the foreground and return the exit code.

    Args:
        loaded: What to run it with.
        load: Reads the same sources again, for ``Reload``.
        guest: Runs in the same process, from the node's start to its stop.

    Raises:
        QuorateError: The node could not be started; the message says what to do.
        Exception: What the guest has raised, after the node has stopped without a failure.
        EarlyStop: Within ``early_stop``: asked to stop before it was opened.
    """
    config = loaded.config
    configure_logging(config.logging.level, config.logging.format)
    fs = _filesystem(config.node.filesystem)
    if not config.node.data_dir.is_dir():
        raise IdentityError("there is no such data directory", config.node.data_dir)
    with DirectoryLock(config.node.data_dir):
        return _run_loop(config, fs, Reload(loaded, load), guest)


def _run_loop(config: ServerConfig, fs: FileSystem, reload: Reload, guest: Guest | None) -> int:
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.run(_serve(config, fs, reload, guest))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(config, fs, reload, guest))


async def _serve(config: ServerConfig, fs: FileSystem, reload: Reload, guest: Guest | None) -> int:
    # The start of every series as a series of its own; the process has one start.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ending = Ending()
    rng = random.Random(secrets.randbits(64))
    # A stop signal that comes while the directory is opened raises ``EarlyStop``.
    try:
        node = ServerNode(config, fs, rng=rng, on_failure=ending.fail)
    except IdentityError:
        # A mistake in what was asked for, or a damaged identity: nothing was opened, and the
        # command line knows the exit code of either.
        raise
    except StorageError as error:
        ending.fail(error)
        return _report_end(ending)
    loop = asyncio.get_running_loop()
    StopSignals(ending)
    loop.add_signal_handler(signal.SIGHUP, reload)
    log_boot(node.boot_report)
    if node.knows_no_peer:
        _log.warning("event=no_peer_known setting=bootstrap.servers")
    if config.security.mode == INSECURE and config.security.unsafe_insecure_listeners:
        _log.warning("event=listening_without_security mode=%s", config.security.mode)
    if config.node.huge_pages:
        _log.info("event=memory_moved_to_huge_pages bytes=%d", move_to_huge_pages())
    try:
        await live(node, ending, ServiceManager(), guest)
    except Exception as error:
        if ending.failure is None:
            raise
        _log.error("event=stop_failed error=%s", error, exc_info=trace_of(error))
    if ending.failure is None:
        _log.info("event=stopped node_id=%d", node.node_id)
    return _report_end(ending)


async def live(
    node: ServerNode, ending: Ending, manager: ServiceManager, guest: Guest | None = None
) -> None:
    """Start, serve until there is a reason to end, transfer leadership unless it is a failure,
    stop.

    The reason may come before the start is over: the start is finished then, not broken off. The
    manager is told that the node has started once it listens, with or without a leader: the first
    start of a cluster needs all its voters. A guest ends before the node stops; what it has raised
    is raised here, unless the node has failed.
    """
    visit: GuestRun | None = None
    releasing: asyncio.TimerHandle | None = None
    watchdog = Watchdog(manager, node.host.take_turn)
    collection = CycleCollection(lambda: _applied_changes(node))
    try:
        # Before the start, which may replay a million records.
        collection.start()
        await node.start()
        if not ending.is_due:
            releasing = asyncio.get_running_loop().call_later(_RELEASE_S, _release_start_pages)
            manager.notify(READY)
            watchdog.start()
            _log.info("event=serving node_id=%d client=%s", node.node_id, node.client_address)
            visit = None if guest is None else GuestRun(guest, node, ending)
        await ending.wait()
        manager.notify(STOPPING)
        if visit is not None and ending.failure is None:
            await ending.unless_failed(visit.end())
        if ending.failure is None:
            await ending.unless_failed(node.transfer_leadership())
    finally:
        if releasing is not None:
            releasing.cancel()
        collection.stop()
        watchdog.stop()
        if visit is not None:
            await visit.leave()
        await node.stop()
    if visit is not None and ending.failure is None:
        visit.check()


def _release_start_pages() -> None:
    _log.info("event=start_pages_released bytes=%d", release_start_pages())


def _applied_changes(node: ServerNode) -> int:
    """Return how many changes were applied: records, and changes that one record brought about."""
    controller = node.replica.controller
    return controller.image.provenance.end_offset + controller.checkpoint.changes.absorbed


def _report_end(ending: Ending) -> Exit:
    """Report what ended the node, or prevented its start; return the exit code."""
    reason = ending.failure
    if reason is not None:
        hint = (
            hint_for(reason) if isinstance(reason, Exception) else "please report this with the log"
        )
        words = f"error: the node stopped: {reason}" + (f" ({hint})" if hint else "")
        print(visible(words), file=sys.stderr)  # noqa: T201 - the command ends here
    return ending.status


def _filesystem(name: str) -> FileSystem:
    """The real file system, or the one that ``node.filesystem`` names.

    Raises:
        ConfigError: It cannot be imported.
    """
    if not name:
        return OsFileSystem(DescriptorReserve())
    module, _, attribute = name.partition(":")
    if not _is_of_tests(module):
        raise ConfigError(
            [f"node.filesystem is for test builds only: {name} is not in the tests of a checkout"]
        )
    try:
        made: FileSystem = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise ConfigError([f"node.filesystem: {name} cannot be loaded: {error}"]) from error
    return made


def _is_of_tests(module: str) -> bool:
    """Whether a module lies in the tests of a checkout, which no installation has.

    A module that does not exist passes: the import says so.
    """
    try:
        found = importlib.util.find_spec(module)
    except ImportError:
        return True
    if found is None or found.origin is None:
        return found is None
    place = Path(found.origin).resolve()
    return any(
        each.name == "tests" and (each.parent / "pyproject.toml").is_file()
        for each in place.parents
    )
