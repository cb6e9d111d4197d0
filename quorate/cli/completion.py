"""``quorate completion``: the script that teaches a shell our commands.

Click's scripts are mended in three ways. In bash a word ends at ``:`` and ``=`` too, so click
would take ``--bootstrap host:9190`` for three words; ours hands over the line. zsh and fish replace
the whole word, so a value behind ``--option=`` has the option in front. And neither bash nor zsh
may put a space behind ``KEY=``, where a value follows.
"""

from __future__ import annotations

import os
from typing import Any, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from quorate.cli.command import LocalCommand

VARIABLE: Final = "_QUORATE_COMPLETE"
"""The environment variable in which a shell says that it asks for words."""
_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value
    response=$(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \\
        %(complete_var)s=bash_complete $1)
    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=($value)
            [[ $value != *[=:] ]] || compopt -o nospace
        fi
    done
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""
_ADD: Final = "        compadd -U -V unsorted -a completions\n"
_ADD_WITHOUT_SPACE: Final = """\
        compadd -U -V unsorted -S '' -- ${(M)completions:#*[=:]}
        completions=(${completions:#*[=:]})
        compadd -U -V unsorted -a completions
"""


class _Bash(BashComplete):
    """Reads the line itself, and returns what bash has to insert for its own word."""

    source_template = _BASH
    _kept = ""
    """What the word has in front of that which bash replaces."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("COMP_LINE")
        if line is None:  # An older script, kept in a file.
            return super().get_completion_args()
        words = split_arg_string(line)
        typed = "" if line[-1:].isspace() or len(words) < 2 else words.pop()
        replaced = os.environ.get("COMP_WORD", "")
        if replaced in (":", "="):
            replaced = ""
        self._kept = typed[: len(typed) - len(replaced)] if typed.endswith(replaced) else ""
        return words[1:], typed

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"{item.type},{item.value.removeprefix(self._kept)}"


def _with_option(typed: str, item: CompletionItem[Any]) -> CompletionItem[Any]:
    """Put ``--option=`` in front of its value: these two shells replace the whole word."""
    option, equals, _ = typed.partition("=")
    if not equals or not option.startswith("--") or item.value.startswith(f"{option}="):
        return item
    return CompletionItem(f"{option}={item.value}", type=item.type, help=item.help)


class _Zsh(ZshComplete):
    source_template = ZshComplete.source_template.replace(_ADD, _ADD_WITHOUT_SPACE)

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        found = super().get_completions(args, incomplete)
        return [_with_option(incomplete, each) for each in found]


class _Fish(FishComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        found = super().get_completions(args, incomplete)
        return [_with_option(incomplete, each) for each in found]


for _each in (_Bash, _Zsh, _Fish):
    add_completion_class(_each)


@click.command(cls=LocalCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash: eval "$(quorate completion bash)"                in ~/.bashrc
    zsh:  eval "$(quorate completion zsh)"                 in ~/.zshrc, behind compinit
    fish: quorate completion fish >~/.config/fish/completions/quorate.fish
    """  # noqa: D301 - click's mark for lines that stay as they are
    complete = get_completion_class(shell)
    if complete is None:
        raise click.UsageError(f"no completion for {shell}")
    root = context.find_root().command
    click.echo(complete(root, {}, "quorate", VARIABLE).source())
