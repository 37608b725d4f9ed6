"""`veilcount completion`: what a shell needs to complete commands, options and collections."""

from __future__ import annotations

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from . import options
from .main import NAME, veilcount
from .output import tell_json, tell_verbatim

VARIABLE = f"_{NAME.upper()}_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print a script for the shell, which completes words.")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@options.as_json
def command(*, shell: str | None, as_json: bool) -> None:
    """Print a script that lets SHELL complete commands, options and names of collections.

    \b
    bash: add to ~/.bashrc                   eval "$(veilcount completion bash)"
    zsh:  add to ~/.zshrc, after compinit    eval "$(veilcount completion zsh)"
    fish: run once
      veilcount completion fish > ~/.config/fish/completions/veilcount.fish

    Without SHELL, for the shell that is named in the variable SHELL. Collections are found in the
    definitions FILE that was typed, or in the store of --store or VEILCOUNT_STORE, if it is SQLite.
    """  # noqa: D301 - \b keeps these lines apart in the help text
    chosen = shell or PurePath(os.environ.get("SHELL", "")).name
    kind = get_completion_class(chosen) if chosen in SHELLS else None
    if kind is None:
        raise click.BadParameter(f"{chosen!r}: give {', '.join(SHELLS)}", param_hint="SHELL")
    script = kind(veilcount, {}, NAME, VARIABLE).source()
    if as_json:
        tell_json({"shell": chosen, "script": script})
    else:
        tell_verbatim(script)
