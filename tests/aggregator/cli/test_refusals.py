"""Command lines that are refused: the exit code, and exactly what stands on stderr.

`refusals.txt` has a block for each: the code and the command, then the line that names what is
wrong and the fix. Words in capitals stand for files and addresses of the test.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.system.server import free_port

from .conftest import Type

BLOCKS = (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8").strip().split("\n\n")
HEAD = re.compile(r"(\d) \$ (.+)")
FINGERPRINT = re.compile(r"\b[0-9a-f]{12}\b")
DEFINITION = 'app = "a"\n[b]\nquestion = "?"\n'
DATES = "from = 2026-11-01\nuntil = 2026-12-01\n"
TEXTS = {
    "BROKEN": "app = ",
    "MISSPELLED": 'app = "a"\n[b]\nquestoin = "?"',
    "INCOMPLETE": DEFINITION,
    "DATES": DEFINITION
    + 'boolean = true\nepsilon = 1\nunit = "day"\nfrom = 2026-12-01\nuntil = 2026-11-01',
    "EPSILON": DEFINITION + 'boolean = true\nepsilon = 17\nunit = "day"\n' + DATES,
    "UNIT": DEFINITION + 'boolean = true\nepsilon = 1\nunit = "hour"\n' + DATES,
    "NOVALUES": DEFINITION + 'values = ["one"]\nepsilon = 1\nunit = "day"\n' + DATES,
    "RULES": '[[rule]]\nname = "x"\ncollection = "theme"\nsilent = "soon"',
}


def test_there_are_many_and_each_is_another() -> None:
    assert len({block.splitlines()[0] for block in BLOCKS}) == len(BLOCKS) > 54


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_a_refusal_names_what_is_wrong_and_the_fix(
    block: str,
    *,
    typed: Type,
    file: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("VEILCOUNT_STORE", "VEILCOUNT_URL"):
        monkeypatch.delenv(name, raising=False)
    head, _, expected = block.partition("\n")
    found = HEAD.fullmatch(head)
    assert found
    names = {"FILE": file, "FOLDER": str(tmp_path / "folder"), "PORT": str(free_port())}
    (tmp_path / "folder").mkdir()
    for fixture in ("STORE", "ANSWERED"):
        if fixture in head:
            names[fixture] = request.getfixturevalue(fixture.lower())
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        names[name] = str(tmp_path / name)
    words = re.sub(r"\b[A-Z]+\b", lambda match: names.get(match[0], match[0]), found[2])

    refused = typed(*shlex.split(words))

    shown = refused.err.strip()
    for name, place in names.items():
        shown = shown.replace(place, name).replace(place.removeprefix("sqlite:///"), f"{name}.db")
    assert FINGERPRINT.sub("FINGERPRINT", shown) == expected
    assert (refused.code, refused.out) == (int(found[1]), "")
