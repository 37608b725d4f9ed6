"""What each adversary reaches in each combination of linkage, presence, measure, route and life.

The rows and the adversaries are those of `tests/matrix`. `write` puts them into the threat model,
in place of what is there: combinations that fall to the same adversaries are one line.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path

from tests.matrix.adversaries import ADVERSARIES, TARGETS, figures
from tests.matrix.cells import (
    LINKAGES,
    LIVES,
    PRESENCES,
    ROUTES,
    SEED,
    WAYS,
    Combination,
    rows,
)
from tests.matrix.guesses import Figure
from tests.matrix.lives import PERSONS, population
from tests.matrix.parties import Logs

from .separate import ROOT
from .table import Row, Table

MANY = 48  # persons of each combination, in the whole run; by a shuffler fewer show all or nothing
PAGE = ROOT / "docs" / "threat-model.md"


def run(*, quick: bool) -> Table:
    """Return the figures of all combinations, the chance in brackets."""
    logging.getLogger("veilcount").setLevel(logging.CRITICAL)  # simulated devices warn at length
    persons, begin = PERSONS if quick else MANY, time.process_time()
    table_rows = [
        _row(combination, PERSONS if combination.is_by_shuffler else persons)
        for combination in rows()
    ]
    hours = (time.process_time() - begin) / 3600
    population_size = f"{persons} persons each, {PERSONS} by a shuffler"
    notes = (
        f"{len(table_rows)} rows of seed {SEED}, {population_size}, {hours:.3f} CPU-hours",
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
JOINED = re.compile(r"\*\*(\w+) (\d+) of (\d+)")  # a figure that chance does not explain
CHANCE, EVERY = "chance", "every"
READING = (
    "the most that is joined rightly in any row of a line, or no more than a blind guess joins"
)
#: what promises are about, each with all of its members
AXES: Mapping[str, Sequence[str]] = {
    "way": WAYS,
    "presence": tuple(PRESENCES),
    "life": LIVES,
    "linkage": tuple(LINKAGES),
}
Members = tuple[frozenset[str], ...]  # of each axis
Shares = dict[str, float]  # the most that is joined, by target


@dataclass(frozen=True)
class Line:
    """Some members of each axis, and what adversaries join in any of their combinations."""

    members: Members
    shares: tuple[Shares | None, ...]  # of each adversary; None if it has nothing to guess
    rows: int = 1

    @property
    def outcome(self) -> tuple[frozenset[str] | None, ...]:
        """Which targets fall to each adversary."""
        return tuple(None if shares is None else frozenset(shares) for shares in self.shares)

    def __add__(self, other: Line) -> Line:
        """Take both together: of a target what is joined most."""
        members = (one | another for one, another in zip(self.members, other.members, strict=True))
        shares = map(_most, self.shares, other.shares)
        return Line(tuple(members), tuple(shares), self.rows + other.rows)

    @property
    def cells(self) -> list[str]:
        """The line as the page shows it."""
        return [
            *(_listed(members, axis) for members, axis in zip(self.members, AXES, strict=True)),
            str(self.rows),
            *map(_joined, self.shares),
        ]


def _most(one: Shares | None, other: Shares | None) -> Shares | None:
    if one is None or other is None:
        return one or other
    return {target: max(one.get(target, 0), other.get(target, 0)) for target in {**one, **other}}


def _listed(members: frozenset[str], axis: str) -> str:
    if members == frozenset(AXES[axis]):
        return EVERY
    return ", ".join(sorted(members, key=AXES[axis].index))


def _joined(shares: Shares | None) -> str:
    if not shares:
        return "" if shares is None else CHANCE
    joined = (f"{target} {shares[target]:.0%}" for target in TARGETS if target in shares)
    return ", ".join(joined)


def lines(table_rows: Iterable[Row]) -> list[Line]:
    """Return the lines of a page: combinations apart only if another target falls in them."""
    by_members: dict[Members, Line] = {}
    for row in table_rows:
        line = _line(row)
        before = by_members.get(line.members)
        by_members[line.members] = before + line if before else line
    merged = list(by_members.values())
    for axis in reversed(range(len(AXES))):
        merged = _merged(merged, axis)
    return sorted(merged, key=_place)


def _line(row: Row) -> Line:
    way = str(row["route"]) if "batch" in ROUTES[str(row["route"])] else WAYS[0]
    cells = {**row, "way": way}
    shares = (_shares(str(row[adversary])) for adversary in ADVERSARIES)
    return Line(tuple(frozenset({str(cells[axis])}) for axis in AXES), tuple(shares))


def _shares(cell: str) -> Shares | None:
    figures_of_cell = JOINED.findall(cell)
    return {target: int(right) / int(of) for target, right, of in figures_of_cell} if cell else None


def _merged(unmerged: Iterable[Line], axis: int) -> list[Line]:
    """Take together what differs in one axis alone."""
    groups: dict[object, list[Line]] = {}
    for line in unmerged:
        others = line.members[:axis] + line.members[axis + 1 :]
        groups.setdefault((others, line.outcome), []).append(line)
    return [reduce(Line.__add__, group) for group in groups.values()]


def _place(line: Line) -> list[list[int]]:
    """Return where a line stands among others: by its first members."""
    pairs = zip(line.members, AXES.values(), strict=True)
    return [sorted(map(every.index, members)) for members, every in pairs]


def write(table: Table, page: Path = PAGE) -> None:
    """Replace the published table of a page."""
    text = page.read_text(encoding="utf-8")
    published = PUBLISHED.search(text)
    if published is None:
        raise SystemExit(f"{page.name}: no table of combinations: restore its first line")
    text = text[: published.start()] + markdown(table) + text[published.end() :]
    page.write_text(text, encoding="utf-8")


def markdown(table: Table) -> str:
    """Return the lines of a table as Markdown, with its notes above it."""
    columns = [*AXES, "rows", *ADVERSARIES]
    table_lines = [columns, ["---"] * len(columns), *(line.cells for line in lines(table.rows))]
    body = "".join(f"| {' | '.join(cells)} |\n" for cells in table_lines)
    return f"{table.notes[0]}; {READING}.\n\n{body}"


def published_rows(page: Path = PAGE) -> list[tuple[Members, int]]:
    """Return which members each published line is of, and of how many rows."""
    published = PUBLISHED.search(page.read_text(encoding="utf-8"))
    table_lines = published[0].splitlines()[4:] if published else []
    cells = (line.strip("| ").split(" | ") for line in table_lines)
    return [(_members(row_cells), int(row_cells[len(AXES)])) for row_cells in cells]


def _members(cells: Sequence[str]) -> Members:
    texts = zip(cells, AXES.items(), strict=False)
    return tuple(
        frozenset(every if text == EVERY else text.split(", ")) for text, (_, every) in texts
    )
