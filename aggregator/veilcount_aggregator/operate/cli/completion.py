"""`veilcount completion`: shell completion of commands, options and collections."""

from __future__ import annotations

import os
from pathlib import PurePath

import click
from click.shell_completion import get_completion_class

from veilcount_shared.errors import format_value

from . import options
from .main import NAME, veilcount
from .output import print_json, print_verbatim

VARIABLE = f"_{NAME.upper()}_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@options.as_json
def command(*, shell: str | None, as_json: bool) -> None:
    """Print a script with which SHELL completes commands, options and collections.

    \b
    bash: add to ~/.bashrc                   eval "$(veilcount completion bash)"
    zsh:  add to ~/.zshrc, after compinit    eval "$(veilcount completion zsh)"
    fish: run once
      veilcount completion fish > ~/.config/fish/completions/veilcount.fish

    SHELL defaults to the variable of that name. Collections are looked up in the definitions FILE
    on the command line, or in the store of --store or VEILCOUNT_STORE, if it is SQLite.
    """  # noqa: D301 - \b keeps these lines apart in the help text
    chosen = shell or PurePath(os.environ.get("SHELL", "")).name
    kind = get_completion_class(chosen) if chosen in SHELLS else None
    if kind is None:
        raise click.BadParameter(
            f"{format_value(chosen)}: give {', '.join(SHELLS)}", param_hint="SHELL"
        )
    script = kind(veilcount, {}, NAME, VARIABLE).source()
    if as_json:
        print_json({"shell": chosen, "script": script})
    else:
        print_verbatim(script)
