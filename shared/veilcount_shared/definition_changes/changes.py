"""What differs between two definitions files: question by question, and what one person may spend.

A question continues by its name or by `replaces`: budget, consent and refusal follow this lineage.
What a person may spend is what a device reserves at load, by the claims of its budget ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..budget_claims import Ceilings, Claim, claim_all, micro, total
from ..collection import Collection
from ..collection.canonical import canonical_fields
from ..epsilon import EPSILON_GRAIN
from ..periods import Unit

Collections = Mapping[str, Collection]  # by name

NO_COMMITS = "the repository has no commits: there is nothing to compare with"
DERIVED = "mechanism"  # follows from the other keys, and is named where none of them changed
#: the most periods that a calendar month touches: 31 days may begin and end within a week
PERIODS_A_MONTH = {Unit.EVENT: 31, Unit.DAY: 31, Unit.WEEK: 6, Unit.MONTH: 1, Unit.USER: 1}


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """One question: `before` is None of a new one, `after` of one that is gone."""

    name: str
    before: Collection | None
    after: Collection | None

    @property
    def forms(self) -> tuple[Collection | None, Collection | None]:
        """Both forms, the earlier one first."""
        return self.before, self.after

    @property
    def keys(self) -> list[str]:
        """The fingerprinted keys in which the forms differ, as a file calls them."""
        if self.before is None or self.after is None:
            return []
        before, after = (canonical_fields(form, form.mechanism) for form in self.forms if form)
        keys = [key for key in {**before, **after} if after.get(key) != before.get(key)]
        return [key for key in keys if key != DERIVED] or keys

    @property
    def state(self) -> str:
        """What happened to it, in a word."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "changed" if self.keys else "the same"

    @property
    def to_ask(self) -> str:
        """Whom a client asks again: a no is kept by lineage, and a no to everything stays one."""
        if self.state == "new":
            return "everybody but who said no to everything"
        if self.state == "changed":
            return "everybody but who said no to everything, or to this question"
        return "nobody"


@dataclass(frozen=True, slots=True)
class Spending:
    """The most epsilon that one person may spend: the plain sum over a file's questions."""

    day: Fraction
    month: Fraction
    life: Fraction


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file of definitions, and the one that devices have; None: there is nothing to compare."""

    new: Collections
    old: Collections | None
    file: str = ""
    against: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)  # of the new file's tables, from 1

    def questions(self) -> Iterator[QuestionChange]:
        """Yield the questions of the new file in its order, then those that are gone."""
        old = self.old or {}
        for name, collection in self.new.items():
            before = old.get(name) or old.get(collection.replaces or "")
            yield QuestionChange(name, before, collection)
        continued = {*self.new, *(collection.replaces for collection in self.new.values())}
        for name in old:
            if name not in continued:
                yield QuestionChange(name, old[name], None)

    def continuing_claims(self) -> tuple[list[Claim], list[Claim]]:
        """Return the claims of a device that had the old file, and those that the new one adds."""
        past = claim_all((self.old or {}).values(), {})
        return past, claim_all(self.new.values(), {claim.name: claim for claim in past})

    def life_of_earlier_devices(self) -> Fraction:
        """Return what a person may spend in all who had the old file: it stays reserved."""
        past, claims = self.continuing_claims()
        return Fraction(total([*past, *claims]).life, EPSILON_GRAIN)


def spending(collections: Collections) -> Spending:
    """Return what a person may spend who has this file alone."""
    claims = claim_all(collections.values(), {})
    monthly = [
        replace(claim, day=micro(month_epsilon(collections[claim.name]))) for claim in claims
    ]
    amounts = total(claims), total(monthly)
    return Spending(*(Fraction(amount, EPSILON_GRAIN) for amount in _levels(*amounts)))


def _levels(daily: Ceilings, monthly: Ceilings) -> tuple[int, int, int]:
    return daily.day, monthly.day, daily.life


def month_epsilon(collection: Collection) -> Fraction:
    """Return the largest epsilon of one person within a calendar month."""
    return collection.epsilon_within(min(PERIODS_A_MONTH[collection.unit], collection.periods))
