"""Write the vectors that are computed: `python -m tests.vectors.write`.

All others were written by hand, after prototypes of other authors computed the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import wire_bodies
from .conformance.checks import CHECKS
from .conformance.definitions import compiled_inputs
from .conformance.membership import inputs
from .conformance.relay import relay_inputs
from .conformance.schedules import schedule_inputs
from .conformance.shuffled import shuffled_inputs
from .conformance.tokens import token_inputs
from .conformance.wire import body_inputs
from .vector_files import FOLDER, read, written


def contents() -> dict[Path, str]:
    """Return what the files say."""
    tokens = read("tokens.json")
    documents: dict[str, Any] = {
        "membership.json": inputs(),
        "bodies.json": body_inputs(),
        "relay.json": relay_inputs(),
        "shuffled.json": shuffled_inputs(),
        "compiled.json": compiled_inputs(),
        "schedule.json": schedule_inputs(read("schedule.json")),
        "tokens.json": token_inputs(tokens["private"], tokens["other"]),
    }
    computed = {FOLDER / name: written(CHECKS[name](row)) for name, row in documents.items()}
    return wire_bodies.contents() | computed


if __name__ == "__main__":
    for path, content in contents().items():
        path.write_text(content, encoding="utf-8")
