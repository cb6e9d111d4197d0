"""Entry point of ``quorate``: the table of commands, and how errors become exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click

from quorate import __version__
from quorate.cli.command import RootGroup
from quorate.cli.exits import CliError, Exit, exit_for, hint_for
from quorate.visible_text import visible
from quorum.errors import ConfigError, InvariantViolation, QuorateError
from quorum.transport.poller import poll_on_waiting_thread

PLACES: dict[str, tuple[str, str]] = {
    "format": ("quorate.cli.format:format_command", "Make a data directory for a node."),
    "demo": ("quorate.cli.demo:demo", "Show the whole job on this machine."),
    "console": ("quorate.cli.console:console", "Show a cluster in a browser, read-only."),
    "server": ("quorate.cli.server:server", "Run one node until it is stopped."),
    "certs": ("quorate.cli.certs:certs", "Make an authority, and certificates of a cluster."),
    "context": ("quorate.cli.context:context", "Name clusters, and choose one of them."),
    "health": ("quorate.cli.health:health", "Ask every node how it is: one line each."),
    "top": ("quorate.cli.top:top", "Show the quorum live."),
    "watch": ("quorate.cli.watch:watch", "Show each change as it is committed: what, who, why."),
    "quorum": ("quorate.cli.quorum:quorum", "Look at the quorum, change voters and leader."),
    "topic": ("quorate.cli.topic:topic", "Create, change, list and describe topics."),
    "broker": ("quorate.cli.broker:broker", "Register, list, cordon and unregister brokers."),
    "broker-agent": (
        "quorate.cli.broker_agent:broker_agent",
        "Run a broker's agent: registration, heartbeats, commands.",
    ),
    "config": ("quorate.cli.config:config", "Configuration: of the cluster, and of this node."),
    "acl": ("quorate.cli.acl:acl", "Say who may do what with which resources."),
    "user": ("quorate.cli.user:user", "Passwords of users, kept as SCRAM credentials."),
    "feature": ("quorate.cli.feature:feature", "Show, raise and lower feature levels."),
    "log": ("quorate.cli.log:log", "Read log segments and checkpoints, ours or Kafka's."),
    "import": ("quorate.cli.import_:import_command", "Load a Kafka cluster's metadata."),
    "adopt": ("quorate.cli.adopt:adopt_command", "Make a Kafka controller's directory ours."),
    "release": ("quorate.cli.adopt:release_command", "Give a directory back to Kafka."),
    "history": ("quorate.cli.history:history", "Check what clients saw against what is promised."),
    "snapshot": ("quorate.cli.snapshot:snapshot", "List, read and write checkpoints."),
    "backup": ("quorate.cli.backup:backup", "Create, verify, drill and read backups."),
    "state": ("quorate.cli.state:state", "Show the metadata as of an offset or a time."),
    "shell": ("quorate.cli.shell:shell", "Look around in a state with ls, cd, cat and find."),
    "diff": ("quorate.cli.diff:diff", "Compare two states: what changed, by whom, and why."),
    "export": ("quorate.cli.export:export", "Write the log as Parquet files."),
    "audit": ("quorate.cli.audit:audit", "Ask who did what to the metadata, and when."),
    "sim": ("simulation.cli.sim:sim", "Prove the cluster on simulated time, network and disks."),
    "probe": ("quorate.cli.probe:probe", "Ask this machine's node whether it is alive or ready."),
    "doctor": ("quorate.cli.doctor:doctor", "Check this installation and a node's directory."),
    "recover": (
        "quorate.cli.recover:recover",
        "Say what is left of a lost majority.",
    ),
    "unsafe-lower-epoch": (
        "quorate.cli.lower_epoch:lower_epoch",
        "Set a stopped node's epoch back, when a quorum's epochs are used up.",
    ),
    "random-uuid": ("quorate.cli.random_uuid:random_uuid", "Print a new id."),
    "completion": ("quorate.cli.completion:completion", "Print the shell completion script."),
    "version": ("quorate.cli.version:version", "Print versions."),
}
"""Name -> (module:attribute, help). One line per command; nothing else registers it."""

VERBS = {
    "status": "quorum describe status",
    "replication": "quorum describe replication",
    "may-stop": "quorum may-stop",
    "add-voter": "quorum add-voter",
    "remove-voter": "quorum remove-voter",
    "transfer-leader": "quorum transfer-leader",
    "elect-leaders": "topic elect-leaders",
    "upgrade": "feature upgrade",
    "downgrade": "feature downgrade",
}
"""What is meant by a verb without its noun. A mistake loads no command to find out."""


@click.group(
    cls=RootGroup,
    places=PLACES,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="quorate %(version)s")
def cli() -> None:
    """Quorate: a metadata quorum.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 unhealthy or different, 4 not found,
    5 conflict, 6 refused as unsafe, 7 unreachable or no quorum, 8 damaged data.
    """


_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What the file below standard output answers to a write. Errors of named files name them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Expected errors print one line."""
    poll_on_waiting_thread()
    if "_QUORATE_COMPLETE" in os.environ:
        # How we answer a shell is registered there.
        import quorate.cli.completion  # noqa: F401
    try:
        status = cli.main(
            args=None if arguments is None else list(arguments),
            prog_name="quorate",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show(sys.stderr)
        return Exit.USAGE if isinstance(error, click.UsageError) else Exit.FAILED
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough.
        _drop_output()
        return Exit.OK
    except ConfigError as error:
        for problem in error.problems:
            click.echo(visible(f"error: {problem}"), err=True)
        return Exit.USAGE
    except (CliError, QuorateError) as error:
        _warn(str(error), hint_for(error))
        return exit_for(error)
    except InvariantViolation as violation:
        _warn(f"internal invariant broken: {violation}", "please report this with the log")
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001 - the outermost frame of the process
        if isinstance(error, OSError) and error.errno in _REFUSALS and error.filename is None:
            _drop_output()
            _warn(f"cannot write the output: {error.strerror}", "make room where it is written to")
            return Exit.FAILED
        traceback.print_exc()
        _warn(f"unexpected {type(error).__name__}: {error}", "please report this")
        return Exit.FAILED
    return int(status) if isinstance(status, int) else Exit.OK


def _warn(message: str, hint: str) -> None:
    line = " ".join(message.split())
    click.echo(visible(f"error: {line}") + (f" ({hint})" if hint else ""), err=True)


def _drop_output() -> None:
    """Keep the interpreter from writing the rest, and complaining, at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
