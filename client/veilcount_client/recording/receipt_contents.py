"""The contents of a receipt: its records, and how each is written as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from veilcount_shared.collection import Adjacency

from .kept_values import KeptValue

if TYPE_CHECKING:
    from veilcount_shared.notice import Notice

ADJACENCY = {Adjacency.SUBSTITUTE.value: "substitution", Adjacency.ADD_REMOVE.value: "add-remove"}
NOT_RECORDED = "under definitions that are no longer known, adjacency not recorded"


def _sentence(key: str, **values: object) -> str:
    from veilcount_shared.notice import RECEIPT  # noqa: PLC0415 - no start waits for a text

    return RECEIPT[key].format(**values)


@dataclass(frozen=True, slots=True)
class SpentTotal:
    """The epsilon spent under one model and one adjacency: only these may be added up."""

    model: str | None  # None: of what is no longer loaded
    adjacency: str | None
    epsilon: float

    def line(self) -> str:
        """Return the total in plain words."""
        if self.model is None or self.adjacency is None:
            return f"{NOT_RECORDED}: epsilon {self.epsilon:g}"
        adjacency, epsilon = ADJACENCY[self.adjacency], f"{self.epsilon:g}"
        return _sentence("total", model=self.model, adjacency=adjacency, epsilon=epsilon)


@dataclass(frozen=True, slots=True)
class ReceiptEntry:
    """The part of a receipt on one collection."""

    name: str
    question: str
    model: str
    adjacency: str  # of every epsilon here
    spent: float  # by earlier forms of the question too
    event: str
    day: str
    life: str
    start: str
    until: str
    answers: int | None  # given so far; None if an earlier form gave some of them
    guess_one: Fraction | None  # a right guess between two answers, at most, from one report
    guess_all: Fraction | None  # from all so far, if the answer never changed
    sent: tuple[Mapping[str, Any], ...]
    closed: bool  # the receiver accepts no more
    notice: Notice  # what the person was asked to agree to
    delta: str = ""  # the chance that the epsilons do not cover; of some trusted curators
    kept_values: tuple[KeptValue, ...] = ()  # before they are reported

    def lines(self) -> list[str]:
        """Return the entry in plain words."""
        spent = "spent_by_forms" if self.answers is None else "spent"
        figures = {"spent": f"{self.spent:g}", "life": self.life, "answers": self.answers}
        return [
            f"{self.question} [{self.name}]",
            f"  {_sentence(spent, **figures)}",
            *([f"  {_sentence('closed')}"] if self.closed else []),
            *(f"  {_sentence('report', **row)}" for row in self.sent),
            *(f"  {value.line()}" for value in self.kept_values),
            *(f"  {part.title}: {part.text}" for part in self.notice.texts()),
        ]

    def json(self) -> dict[str, Any]:
        """Return the entry as JSON values."""
        chances = {"guess_one": self.guess_one, "guess_all": self.guess_all}
        return {
            **asdict(self),
            **{key: None if chance is None else float(chance) for key, chance in chances.items()},
            "notice": [asdict(part) for part in self.notice.texts()],
        }


@dataclass(frozen=True, slots=True)
class EarlierEntry:
    """The part of a receipt on a definition that is no longer loaded."""

    name: str
    question: str
    start: str
    until: str
    spent: float  # of a question that has no loaded form, at its newest definition
    sent: tuple[Mapping[str, str], ...]

    def lines(self) -> list[str]:
        """Return the entry in plain words."""
        dates = f" (from {self.start} until {self.until})" if self.start else ""
        return [
            f"Earlier: {self.question or 'not known any more'} [{self.name}]{dates}",
            *([f"  spent {self.spent:g}"] if self.spent else []),
            *(f"  {report['status']}: {report['when']}" for report in self.sent),
        ]


@dataclass(frozen=True, slots=True)
class ReceiptContents:
    """All collections of one person.

    `charged` is the plain sum of all stated epsilons, whatever their adjacency: what the device
    holds against its `ceiling`, and no privacy figure.
    """

    entries: tuple[ReceiptEntry, ...]
    spent: tuple[SpentTotal, ...]
    charged: float
    ceiling: float
    losses: Mapping[str, int]
    earlier: tuple[EarlierEntry, ...] = ()
    problem: str = ""  # why the receipt is empty

    def text(self) -> str:
        """Return the receipt for a person to read."""
        if self.problem:
            return f"There is no receipt: {self.problem}"
        parts: tuple[ReceiptEntry | EarlierEntry, ...] = (*self.entries, *self.earlier)
        lines = [line for part in parts for line in (*part.lines(), "")]
        lines += ["Over all collections:", *(f"  {total.line()}" for total in self.spent)]
        limit = _sentence("limit", charged=f"{self.charged:g}", ceiling=f"{self.ceiling:g}")
        lines.append(f"  {limit}")
        lines += [
            _sentence("losses", reason=reason, count=count) for reason, count in self.losses.items()
        ]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """Return the receipt as JSON values."""
        return {
            "collections": [entry.json() for entry in self.entries],
            "spent": [asdict(total) for total in self.spent],
            "charged": self.charged,
            "ceiling": self.ceiling,
            "losses": dict(self.losses),
            "earlier": [asdict(entry) for entry in self.earlier],
            "problem": self.problem,
        }
