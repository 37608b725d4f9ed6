"""A page, run from its first block to its last."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from veilcount_shared import parse_collections
from veilcount_shared.wire import decode_json

from .http_blocks import ask
from .page_parser import Aside, Block, Unreadable, steps
from .python_blocks import Speaker
from .shell_blocks import Shell, commands
from .workspace import Place, opened

APP = 'app = "acme-editor"\n'


def run(text: str, name: str, folder: Path) -> int:
    """Run the text of a page; return how many of its blocks were run."""
    ran = 0
    with opened(folder) as place:
        reader = Reader(place, name)
        try:
            for step in steps(text):
                ran += reader.take(step)
        finally:
            reader.close()
        reader.test()
    return ran


class Reader:
    """Somebody who does what the page shows."""

    def __init__(self, place: Place, name: str) -> None:
        """Begin at a new place."""
        self._place, self._name = place, name
        self._shell = Shell(place)
        self._speaker = Speaker(place, name)
        self._ways: dict[str, Callable[[Block], None]] = {
            "python": self._speaker.run,
            "sh": self._type,
            "console": self._type,
            "toml": self._define,
            "json": self._json,
            "http": lambda block: ask(block, place, self._where(block)),
        }
        self._asides = {"now": place.turn, "crowd": place.crowd}
        self.close = self._speaker.close
        self.test = self._speaker.test

    def take(self, step: Block | Aside) -> bool:
        """Do a step; return whether it was a block that was run."""
        if isinstance(step, Aside):
            self._asides[step.word](step.text)
            return False
        if step.unrun:
            return False
        self._way(step)(step)
        return True

    def _way(self, block: Block) -> Callable[[Block], None]:
        if block.file:
            return partial(self._write, check=self._checks(block))
        if block.language not in self._ways:
            raise Unreadable(f"{self._where(block)}: nobody here runs `{block.language}` blocks")
        return self._ways[block.language]

    def _checks(self, block: Block) -> Callable[[Block], None]:
        """Return how a file is looked at before it is written; what uses it does the rest."""
        return {"python": self._compile, "toml": self._define}.get(block.language, lambda _: None)

    def _write(self, block: Block, check: Callable[[Block], None]) -> None:
        check(block)
        path = Path(self._place.here(block.file))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._place.here(block.text), encoding="utf-8")

    def _type(self, block: Block) -> None:
        for command in commands(block):
            self._shell.run(command, f"{self._name}:{command.line}")
        self._shell.end(self._where(block))

    def _compile(self, block: Block) -> None:
        compile(block.text, block.file, "exec")

    def _define(self, block: Block) -> None:
        """Read definitions; a block may show a table without the app."""
        whole = block.text if block.text.lstrip().startswith("app") else APP + block.text
        parse_collections(whole, lambda name: Path(name).read_text().splitlines(), self._name)

    def _json(self, block: Block) -> None:
        """Read a document, and as a batch what says that it is one."""
        found = json.loads(block.text)
        if isinstance(found, dict) and "reports" in found:
            decode_json(block.text.encode())

    def _where(self, block: Block) -> str:
        return f"{self._name}:{block.line}"
