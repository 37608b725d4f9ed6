"""A page, run from its first block to its last."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from veilcount_issuer.definition_file import UNPINNED
from veilcount_shared import parse_collections
from veilcount_shared.wire import decode_json

from .http_blocks import run_request
from .page_parser import Block, Directive, Unreadable, steps
from .python_blocks import PagePython
from .shell_blocks import Shell, commands
from .workspace import Place, opened

APP = 'app = "acme-editor"\n'


def run(text: str, name: str, folder: Path) -> int:
    """Run the text of a page; return how many of its blocks were run."""
    ran = 0
    with opened(folder, empty="veilcount new" in text) as place:
        runner = PageRunner(place, name)
        try:
            for step in steps(text):
                ran += runner.take(step)
        finally:
            runner.close()
        runner.test()
    return ran


LINKAGE = 'linkage = "token"'

SIGN_IN = "sign-in.toml"  # no definitions; test_sign_in_file.py reads it


class PageRunner:
    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name = place, name
        self._shell = Shell(place)
        self._python = PagePython(place, name)
        self._runners: dict[str, Callable[[Block], None]] = {
            "python": self._python.run,
            "sh": self._run_commands,
            "console": self._run_commands,
            "toml": self._define,
            "json": self._json,
            "http": lambda block: run_request(block, place, self._where(block)),
        }
        self._directives = {"now": place.set_day, "population": place.populate}
        self.close = self._python.close
        self.test = self._python.test

    def take(self, step: Block | Directive) -> bool:
        """Run a step; return whether it was a block."""
        if isinstance(step, Directive):
            self._directives[step.word](step.text)
            return False
        if step.unrun:
            return False
        run = self._write if step.file else self._runners.get(step.language)
        if run is None:
            raise Unreadable(f"{self._where(step)}: `{step.language}` blocks cannot be run")
        run(step)
        return True

    def _write(self, block: Block) -> None:
        """Check a file, and write it; the commands that use it do the rest."""
        if block.language == "python":
            compile(block.text, block.file, "exec")
        elif block.language == "toml" and block.file != SIGN_IN:
            self._define(block)
        path = Path(self._place.here(block.file))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._place.here(block.text), encoding="utf-8")

    def _run_commands(self, block: Block) -> None:
        for command in commands(block):
            self._shell.run(command, f"{self._name}:{command.line}")
        self._shell.end(self._where(block))

    def _define(self, block: Block) -> None:
        """Read definitions; a block may show a table without the app, and tokens without keys."""
        whole = block.text if block.text.lstrip().startswith("app") else APP + block.text
        if "\ntokens" not in whole:
            whole = whole.replace(LINKAGE, f'{LINKAGE}\ntokens = "{UNPINNED}"')
        parse_collections(whole, lambda name: Path(name).read_text().splitlines(), self._name)

    def _json(self, block: Block) -> None:
        """Read a document, one with reports as a batch."""
        found = json.loads(block.text)
        if isinstance(found, dict) and "reports" in found:
            decode_json(block.text.encode())

    def _where(self, block: Block) -> str:
        return f"{self._name}:{block.line}"
