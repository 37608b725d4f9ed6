"""What each adversary reaches in each combination of linkage, presence, measure, route and life.

The rows and the adversaries are those of `tests/matrix`. `write` puts the table into the threat
model, in place of the one that is there.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import asdict
from pathlib import Path

from tests.matrix.adversaries import ADVERSARIES, figures
from tests.matrix.cells import AXES, SEED, Combination, rows
from tests.matrix.guesses import Figure
from tests.matrix.lives import PERSONS, population
from tests.matrix.parties import Logs

from .separate import ROOT
from .table import Row, Table

MANY = 48  # persons of each combination, in the whole run
PAGE = ROOT / "docs" / "threat-model.md"


def run(*, quick: bool) -> Table:
    """Return the figures of all combinations, the chance in brackets."""
    logging.getLogger("veilcount").setLevel(logging.CRITICAL)  # simulated devices warn at length
    persons, begin = PERSONS if quick else MANY, time.process_time()
    table_rows = [_row(combination, persons) for combination in rows()]
    hours = (time.process_time() - begin) / 3600
    notes = (
        f"{len(table_rows)} rows of seed {SEED}, {persons} persons each, {hours:.3f} CPU-hours",
        "what is joined rightly, of how many; in brackets the most that a blind guess joins",
    )
    return Table("what each adversary reaches, by combination", table_rows, notes)


def _row(combination: Combination, persons: int) -> Row:
    logs = population(combination, persons)
    reached = {adversary: _reached(logs, adversary) for adversary in ADVERSARIES}
    return {**asdict(combination), **reached}


def _reached(logs: Logs, adversary: str) -> str:
    """Return every figure that chance does not explain; if there is none, the least likely one."""
    reached = sorted(figures(logs, adversary).values(), key=lambda figure: figure.p_value)
    significant = [figure for figure in reached if not figure.is_chance]
    return ", ".join(map(_text, significant or reached[:1]))


def _text(figure: Figure) -> str:
    text = f"{figure.target} {figure}"
    return text if figure.is_chance else f"**{text}**"


# -- the table of the threat model -----------------------------------------------------------------

#: a line of notes, an empty line, and the table's lines
PUBLISHED = re.compile(r"^\d+ rows of seed [^\n]*\n\n(?:\|[^\n]*\n)+", re.MULTILINE)


def write(table: Table, page: Path = PAGE) -> None:
    """Replace the published table of a page."""
    text = page.read_text(encoding="utf-8")
    published = PUBLISHED.search(text)
    if published is None:
        raise SystemExit(f"{page.name}: no table of combinations: restore its first line")
    text = text[: published.start()] + markdown(table) + text[published.end() :]
    page.write_text(text, encoding="utf-8")


def markdown(table: Table) -> str:
    """Return a table as Markdown, with its notes above it."""
    lines = [list(table.columns), ["---"] * len(table.columns)]
    lines += [[str(row[name]) for name in table.columns] for row in table.rows]
    body = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{'; '.join(table.notes)}.\n\n{body}"


def published_combinations(page: Path = PAGE) -> list[Combination]:
    """Return the combinations of the published table, in its order."""
    published = PUBLISHED.search(page.read_text(encoding="utf-8"))
    lines = published[0].splitlines()[4:] if published else []
    cells = (line.strip("| ").split(" | ") for line in lines)
    return [Combination(*members[: len(AXES)]) for members in cells]
