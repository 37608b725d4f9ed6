"""Command lines that are refused: the exit code, and exactly what stands on stderr.

`refusals.txt` has a block for each: the code and the command, then the line that names what is
wrong and the fix. Words in capitals stand for files and addresses of the test.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from veilcount_aggregator.store.sqlite.schema import APPLICATION, FORMAT

from ....system.server import free_port
from .conftest import Type

BLOCKS = (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8").strip().split("\n\n")
HEAD = re.compile(r"(\d) \$ (.+)")
FINGERPRINT = re.compile(r"\b[0-9a-f]{12}\b")
DEFINITION = 'app = "a"\n[b]\nquestion = "?"\n'
DATES = "from = 2026-11-01\nuntil = 2026-12-01\n"
TEXTS = {
    "EMPTY": "",
    "LISTED": DEFINITION + 'values_file = "LATIN"\nepsilon = 1\nunit = "day"\n' + DATES,
    "BROKEN": "app = ",
    "MISSPELLED": 'app = "a"\n[b]\nquestoin = "?"',
    "INCOMPLETE": DEFINITION,
    "DATES": DEFINITION
    + 'boolean = true\nepsilon = 1\nunit = "day"\nfrom = 2026-12-01\nuntil = 2026-11-01',
    "EPSILON": DEFINITION + 'boolean = true\nepsilon = 17\nunit = "day"\n' + DATES,
    "UNIT": DEFINITION + 'boolean = true\nepsilon = 1\nunit = "hour"\n' + DATES,
    "NOVALUES": DEFINITION + 'values = ["one"]\nepsilon = 1\nunit = "day"\n' + DATES,
    "OPEN": "".join(
        f'{head}\nquestion = "?"\nepsilon = 1\nunit = "day"\n{DATES}{rest}\n'
        for head, rest in {
            'app = "a"\n[word]': 'values = "open"',
            "[letters]": 'values = "open"\ndiscover = true',
            "[body]": 'features = {age = [0, 90], height = [0, 2]}\nmeasure = "moments"',
        }.items()
    ),
    "COUNTS": "message,count\n0,10\n1,1.5\n",
    "SMALL": '{"0": 1, "1": 2}',
    "RULES": '[[rule]]\nname = "x"\ncollection = "theme"\nsilent = "soon"',
}


def test_there_are_many_and_each_is_another() -> None:
    assert len({block.splitlines()[0] for block in BLOCKS}) == len(BLOCKS) > 115


def databases(folder: Path) -> None:
    """Make another program's database, and a store of a newer version."""
    with closing(sqlite3.connect(folder / "OTHER")) as other:
        other.execute("create table other (a)")
    with closing(sqlite3.connect(folder / "NEWER")) as newer:
        newer.execute("create table newer (a)")
        newer.execute(f"pragma application_id = {APPLICATION}")
        newer.execute("pragma user_version = 1000")


@contextmanager
def listening(path: Path) -> Iterator[None]:
    """Listen on a Unix socket, as another server does."""
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(path))
        taken.listen()
        yield


def plain(shown: str) -> str:
    """Return a log line of `serve` as its event and reason, and any other text as it is."""
    if not shown.startswith("{"):
        return shown
    line = json.loads(shown)
    assert line.keys() == {"time", "level", "event", "reason"}
    return f"{line['event']}: {line['reason']}"


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
    (tmp_path / "LATIN").write_text('app = "caf\u00e9"', encoding="latin-1")
    databases(tmp_path)
    names |= {name: str(tmp_path / name) for name in (*TEXTS, "LATIN", "OTHER", "NEWER", "TAKEN")}
    words = re.sub(r"\b[A-Z]+\b", lambda match: names.get(match[0], match[0]), found[2])

    with listening(tmp_path / "TAKEN"):
        refused = typed(*shlex.split(words))

    shown = plain(refused.err.strip())
    shown = shown.replace(f"reads {FORMAT}:", "reads FORMAT:")
    for name, place in names.items():
        shown = shown.replace(place, name).replace(place.removeprefix("sqlite:///"), f"{name}.db")
    assert FINGERPRINT.sub("FINGERPRINT", shown) == expected
    assert (refused.code, refused.out) == (int(found[1]), "")
