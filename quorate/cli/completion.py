"""``quorate completion``: the script that teaches a shell our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from quorate.cli.command import LocalCommand


@click.command(cls=LocalCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    For bash, put this line into ~/.bashrc: eval "$(quorate completion bash)"
    """
    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"no completion for {shell}")
    root = context.find_root().command
    click.echo(complete(root, {}, "quorate", "_QUORATE_COMPLETE").source())
