"""What a kind shows, in order: a panel has some of the figures in one form.

Terminal and page walk the panels of a kind, and pick the rows of each by what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..text import number_format
from ..text.result_columns import spelled
from .results import Figure

Pick = Callable[[Sequence[Figure]], list[Figure]]


class Form(StrEnum):
    """How figures are shown."""

    DOTS = "dots"  # a dot and its interval in a row
    LINE = "line"  # of a curve, by `at`
    GRID = "grid"  # of two questions, an answer to the one a row, to the other a column
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class AnswerGrid:
    """Figures of two questions: of each answer to the first, those of all to the second."""

    one: str
    two: str
    figures: tuple[Figure, ...]

    @property
    def answers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The answers to the first question, which are rows, and to the second."""
        one, two = (
            dict.fromkeys(
                spelled(row.of[name]) for row in self.figures if isinstance(row.of, Mapping)
            )
            for name in (self.one, self.two)
        )
        return tuple(one), tuple(two)

    def rows(self) -> list[tuple[str, tuple[Figure, ...]]]:
        """Return the rows by the answer to the first question."""
        one, two = self.answers
        size = len(two)
        return [
            (answer, self.figures[row * size : (row + 1) * size]) for row, answer in enumerate(one)
        ]


@dataclass(frozen=True, slots=True)
class Panel:
    """Figures of some kinds, shown together; `pick` derives rows that are no figures themselves.

    `band`: they lie in one band that covers all of them at once, and have no poisoning band.
    """

    figures: tuple[str, ...]
    title: str
    form: Form = Form.DOTS
    of_shares: bool = True
    band: bool = False
    pick: Pick | None = None

    def rows(self, figures: Sequence[Figure]) -> list[Figure]:
        """Return the rows of the panel, in their order."""
        if self.pick is not None:
            return self.pick(figures)
        return [figure for figure in figures if figure.kind in self.figures]

    def grids(self, figures: Sequence[Figure]) -> list[AnswerGrid]:
        """Return the figures of each two questions in rows and columns."""
        grids: dict[tuple[str, ...], list[Figure]] = {}
        for row in self.rows(figures):
            if isinstance(row.of, Mapping):
                grids.setdefault(tuple(row.of), []).append(row)
        return [AnswerGrid(one, two, tuple(rows)) for (one, two), rows in grids.items()]

    def label(self, row: Figure, write: Callable[[object], str]) -> str:
        """Return what a row is of; `write` writes a value."""
        if self.form is not Form.DOTS and row.at is not None:
            return number_format.figure(row.at, of_shares=not self.of_shares)
        if row.of is None:
            return number_format.sentence_case(row.kind)
        name = row.kind.replace("_", " ")
        return f"{name} of {row.of}" if self.form is Form.TABLE else write(row.of)

    def figure_text(self, row: Figure) -> str:
        """Return the figure of a row, with the digits that its interval leaves any meaning."""
        if row.figure is None:
            return "not stated"
        if self.of_shares:
            return number_format.share(row.figure)
        if row.low is None:  # it has no interval
            return number_format.significant(row.figure, 2)
        return number_format.precise(row.figure, *row.interval)

    def interval_text(self, row: Figure) -> str:
        """Return the interval of a row; empty: it has none."""
        return "" if row.low is None else self._ends(row.interval)

    def fakes_text(self, row: Figure) -> str:
        """Return the poisoning band of a row; without one it may be any number."""
        if row.figure is None:
            return ""
        return "any number" if row.fake_band is None else self._ends(row.fake_band)

    def _ends(self, ends: tuple[float, float]) -> str:
        if self.of_shares:
            return number_format.interval(*ends, of_shares=True)
        return number_format.number_interval(*ends)
