"""Shell completion: what is offered, and what a real shell makes of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from veilcount_aggregator.operate.cli.completion import SHELLS, VARIABLE
from veilcount_aggregator.operate.cli.main import COMMANDS, NAME, veilcount

from .conftest import Type

ASK = {
    "bash": """
eval "$(veilcount completion bash)"
COMP_WORDS=(veilcount co) COMP_CWORD=1
_veilcount_completion veilcount co veilcount
echo "${COMPREPLY[@]}"
""",
    "zsh": """
autoload -U compinit && compinit -D
eval "$(veilcount completion zsh)"
whence _veilcount_completion && echo collections compare contrast completion
""",
    "fish": """
veilcount completion fish | source
complete -C "veilcount co"
""",
}


def offered(*words: str) -> list[str]:
    *before, incomplete = words
    completion = BashComplete(veilcount, {}, NAME, VARIABLE)
    return [item.value for item in completion.get_completions(list(before), incomplete)]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_completes_commands(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    completed = subprocess.run(
        [shell, "-c", ASK[shell]],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": commands, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert {"collections", "compare", "contrast", "completion"} <= set(completed.stdout.split())
    assert completed.stderr == ""


def test_a_script_is_of_the_shell_that_is_named_or_used(
    typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shell in SHELLS:
        completed = typed("completion", shell, "--json").json

        assert completed["shell"] == shell
        assert f"{VARIABLE}={shell}_complete" in completed["script"]
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert "fish_complete" in typed("completion").out
    monkeypatch.setenv("SHELL", "/bin/sh")
    unknown = typed("completion")

    assert unknown.code == 2
    assert "bash, zsh, fish" in unknown.err


def test_commands_are_offered_and_collections_of_the_file_that_was_typed(file: str) -> None:
    assert offered("") == list(COMMANDS)
    assert offered("keys", "c") == ["create"]
    assert "--version" in offered("--")
    assert offered("notice", file, "") == ["theme", "city", "minutes", "crash"]
    assert offered("simulate", file, "t") == ["theme"]
    assert offered("audit", "/nowhere/none.toml", "") == []


def test_collections_are_offered_of_the_store_that_is_set(
    answered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote one is not waited for."""
    found = []
    for store in (answered, "sqlite:////nowhere/none.db", "redis://127.0.0.1:1/0"):
        monkeypatch.setenv("VEILCOUNT_STORE", store)
        found.append(offered("estimate", "m"))

    assert found == [["minutes"], [], []]
    assert offered("budget", "--store", answered, "c") == ["city", "crash"]
