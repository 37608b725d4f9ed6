"""What each adversary reaches in each combination of linkage, presence, measure, route and life.

The rows and the adversaries are those of `tests/matrix`. `write` puts the table into the threat
model, between two markers.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import asdict
from pathlib import Path

from tests.matrix.adversaries import ADVERSARIES, Figure, figures
from tests.matrix.cells import AXES, SEED, Combination, rows
from tests.matrix.lives import PERSONS, Logs, population

from .table import Row, Table

MANY = 48  # persons of each combination, in the whole run
PAGE = Path(__file__).parents[1] / "docs" / "threat-model.md"
BEGIN, END = "<!-- combinations -->", "<!-- end of combinations -->"


def run(*, quick: bool) -> Table:
    """Return the figures of all combinations, the chance in brackets."""
    logging.getLogger("veilcount").setLevel(logging.CRITICAL)  # simulated devices warn at length
    persons, begin = PERSONS if quick else MANY, time.process_time()
    table_rows = [_row(combination, persons) for combination in rows()]
    hours = (time.process_time() - begin) / 3600
    columns = dict.fromkeys([*AXES, *ADVERSARIES], "")
    notes = (
        f"{len(table_rows)} rows of seed {SEED}, {persons} persons each, {hours:.3f} CPU-hours",
        "what is joined rightly, of how many; in brackets the most that a blind guess joins",
    )
    return Table("what each adversary reaches, by combination", columns, table_rows, notes)


def _row(combination: Combination, persons: int) -> Row:
    logs = population(combination, persons)
    reached = {adversary: _reached(logs, adversary) for adversary in ADVERSARIES}
    return {**asdict(combination), **reached}


def _reached(logs: Logs, adversary: str) -> str:
    """Return every figure beyond chance; if there is none, the least likely one."""
    reached = sorted(figures(logs, adversary).values(), key=lambda figure: figure.p_value)
    beyond = [figure for figure in reached if not figure.is_chance]
    return ", ".join(map(_text, beyond or reached[:1]))


def _text(figure: Figure) -> str:
    text = f"{figure.target} {figure}"
    return text if figure.is_chance else f"**{text}**"


# -- the table of the threat model -----------------------------------------------------------------


def write(table: Table, page: Path = PAGE) -> None:
    """Replace the table between the markers of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{markdown(table)}\n{END}{after}", encoding="utf-8")


def markdown(table: Table) -> str:
    """Return a table as Markdown, with its notes above it."""
    lines = [list(table.columns), ["---"] * len(table.columns)]
    lines += [[str(row[name]) for name in table.columns] for row in table.rows]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{'; '.join(table.notes)}.\n\n{body}"


def combinations_in(page: Path = PAGE) -> list[Combination]:
    """Return the combinations of the table on a page, in its order."""
    table = page.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    lines = re.findall(r"^\| (.+) \|$", table, re.MULTILINE)[2:]
    return [Combination(*line.split(" | ")[: len(AXES)]) for line in lines]
