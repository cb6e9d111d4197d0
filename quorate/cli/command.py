"""Commands and groups that understand the shared options wherever they are written.

``quorate -o json topic list`` and ``quorate topic list -o json`` mean the same: the options
belong to the root and to every command, and all of them fill in one ``Session``. The later one
written wins, and any written one wins over the environment. Those that say how to reach a cluster
belong to the root and to the commands that reach one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from quorate.cli.completions import contexts
from quorate.cli.did_you_mean import did_you_mean, verb_alike
from quorate.cli.early_option import command_with
from quorate.cli.extra_words import StrictCommand
from quorate.cli.output import FORMATS
from quorate.cli.ranges import Seconds
from quorate.cli.session import Session

pass_session = click.make_pass_decorator(Session, ensure=True)


def _remember(attribute: str, convert: Callable[[Any], object] = lambda value: value) -> Any:
    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is None:
            return
        # The root and every command read the environment, so an inner one must not undo what
        # was written before it.
        session = context.ensure_object(Session)
        source = context.get_parameter_source(parameter.name or attribute)
        if source is ParameterSource.COMMANDLINE:
            session.written.add(attribute)
        elif attribute in session.written:
            return
        setattr(session, attribute, convert(value))

    return callback


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_TLS_OPTIONS = (
    ("tls_ca", "--tls-ca", "PEM certificates that servers are verified with; turns TLS on."),
    ("tls_cert", "--tls-cert", "PEM certificate of this client."),
    ("tls_key", "--tls-key", "PEM private key of this client."),
)


_PROOF_OPTIONS = (
    (
        "sasl_password_file",
        "--sasl-password-file",
        "File of mode 0600 with the password of --sasl-user; - reads it from standard input.",
    ),
    (
        "sasl_token_file",
        "--sasl-token-file",
        "File of mode 0600 with a JSON Web Token, in place of --sasl-user.",
    ),
)


def _proof_option(attribute: str, flag: str, text: str) -> click.Option:
    return click.Option(
        [flag],
        type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
        expose_value=False,
        callback=_remember(attribute),
        envvar=f"QUORATE_{attribute}".upper(),
        help=text,
    )


def _tls_option(attribute: str, flag: str, text: str) -> click.Option:
    return click.Option(
        [flag],
        type=click.Path(dir_okay=False, path_type=Path),
        expose_value=False,
        callback=_remember(attribute),
        envvar=f"QUORATE_{attribute}".upper(),
        help=text,
    )


_CLUSTER_FLAGS = {
    "bootstrap": "--bootstrap",
    "timeout_s": "--timeout",
    **{attribute: flag for attribute, flag, _ in (*_TLS_OPTIONS, *_PROOF_OPTIONS)},
    "sasl_user": "--sasl-user",
    "context": "--context",
}


def cluster_options() -> list[click.Option]:
    """Fresh instances of the options of every command that reaches a cluster."""
    return [
        click.Option(
            ["--bootstrap"],
            metavar="HOST:PORT,...",
            expose_value=False,
            callback=_remember("bootstrap", _split),
            envvar="QUORATE_BOOTSTRAP",
            help="Nodes to ask first, or QUORATE_BOOTSTRAP.",
        ),
        click.Option(
            ["--timeout"],
            type=Seconds(min=0, min_open=True),
            expose_value=False,
            callback=_remember("timeout_s"),
            help="Give up after this long (default: 10).",
        ),
        *(_tls_option(*texts) for texts in _TLS_OPTIONS),
        click.Option(
            ["--sasl-user"],
            metavar="NAME",
            expose_value=False,
            callback=_remember("sasl_user"),
            envvar="QUORATE_SASL_USER",
            help="The user whose password is proved to the nodes, or QUORATE_SASL_USER.",
        ),
        *(_proof_option(*texts) for texts in _PROOF_OPTIONS),
        click.Option(
            ["--context"],
            metavar="NAME",
            expose_value=False,
            callback=_remember("context"),
            envvar="QUORATE_CONTEXT",
            shell_complete=contexts,
            help="The cluster named so by `quorate context add`, or QUORATE_CONTEXT.",
        ),
    ]


def output_options() -> list[click.Option]:
    """Fresh instances of the options of every command."""
    return [
        click.Option(
            ["-o", "--output"],
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_remember("output"),
            help="How to show the result (default: table).",
        ),
        click.Option(
            ["--quiet"],
            is_flag=True,
            default=None,
            expose_value=False,
            callback=_remember("is_quiet"),
            help="Only results and errors, no remarks.",
        ),
        click.Option(
            ["--no-color"],
            is_flag=True,
            default=None,
            expose_value=False,
            callback=_remember("is_colourless"),
            help="No colours; NO_COLOR does the same.",
        ),
    ]


def _hidden(options: Iterable[click.Option]) -> list[click.Option]:
    found = list(options)
    for each in found:
        each.hidden = True
    return found


def wide_option(function: Any) -> Any:
    """Add ``--wide`` to a command whose table has more columns than fit."""
    return click.option(
        "--wide",
        is_flag=True,
        default=None,
        expose_value=False,
        callback=_remember("is_wide"),
        help="Show every column in the table.",
    )(function)


class LocalCommand(StrictCommand):
    """A command that reaches no cluster: it takes the options about output only."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.extend(output_options())

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; an option before it that has no meaning here is not passed over in silence."""
        session = ctx.ensure_object(Session)
        unused = [flag for name, flag in _CLUSTER_FLAGS.items() if name in session.written]
        if unused:
            session.announce(
                f"note: {', '.join(unused)} not used: {ctx.command_path} reaches no cluster"
            )
        return super().invoke(ctx)


class ContextCommand(StrictCommand):
    """A command that takes all shared options, and reaches nothing by them."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.extend((*cluster_options(), *output_options()))


class SessionCommand(ContextCommand):
    """A command that reaches a cluster: by its options, or by a context."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; what the options leave open is taken from a context."""
        ctx.ensure_object(Session).take_from_context()
        return super().invoke(ctx)


class NamingGroup(click.Group):
    """A group that answers what it does not know with what was perhaps meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; an option that the command behind it has is told its place."""
        written = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            command = command_with(option, written, self, ctx)
            if not command:
                raise
            ctx.fail(
                f"No such option {option!r} before the command. Write it behind: "
                f"{ctx.command_path} {command} {option}"
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; some of its releases name nothing near, or only what is loaded."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = self._meant(ctx, name)
            ctx.fail(f"No such command {name!r}." + (f" D{near[1:]}" if near else ""))
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> str:
        """Return a question with what was perhaps meant; empty if nothing is near."""
        known = self.list_commands(ctx)
        return verb_alike(name, known) or did_you_mean(name, known)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``: the first sentence of each command, whole."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, _first_sentence(each)) for name, each in found if each and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first_sentence(command: click.Command) -> str:
    text = " ".join((command.help or command.short_help or "").split())
    return text.partition(". ")[0].rstrip(".") + "."


class NounGroup(NamingGroup):
    """``quorate topic ...``: a noun whose verbs reach a cluster.

    The shared options may stand between noun and verb, too. Only the verb's help shows them.
    """

    command_class = SessionCommand

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.extend(_hidden((*cluster_options(), *output_options())))


NounGroup.group_class = NounGroup


class LocalGroup(NamingGroup):
    """``quorate log ...``: a noun whose verbs reach no cluster."""

    command_class = LocalCommand

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.extend(_hidden(output_options()))


LocalGroup.group_class = LocalGroup


class RootGroup(NamingGroup):
    """The root: commands live in one module each and are imported when they are needed.

    ``places`` maps a command's name to ``module:attribute`` and its one-line help, so that
    ``quorate --help`` imports nothing. ``verbs`` maps a verb that people type without its noun to
    the whole command.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        places: Mapping[str, tuple[str, str]] = settings.pop("places")
        self._verbs: Mapping[str, str] = settings.pop("verbs")
        super().__init__(*arguments, **settings)
        self._places = places
        self.params.extend((*cluster_options(), *output_options()))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the table."""
        del ctx
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None when there is none."""
        del ctx
        if cmd_name not in self._places:
            return None
        module, _, attribute = self._places[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{attribute} is not a command")
        return command

    def _meant(self, ctx: click.Context, name: str) -> str:
        """As elsewhere; but a verb that one noun has is rather meant than a name near it."""
        verb = self._verbs.get(name)
        return super()._meant(ctx, name) if verb is None else f"did you mean {verb}?"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, from the table alone."""
        del ctx
        rows: Sequence[tuple[str, str]] = [
            (name, help_text) for name, (_, help_text) in self._places.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
