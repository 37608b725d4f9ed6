"""The privacy notice of a definition, for the person whose device it is.

It states in plain words what the definition promises, and nothing that the software does not keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from veilcount_shared import Collection
from veilcount_shared.collection import Linkage, Model, Presence, Takes
from veilcount_shared.domain import MAX_LABEL, Boolean, Choice, Cross, Features, Number, OpenStrings
from veilcount_shared.periods import Unit

from ..series.series import GRACE, RECOVERABLE
from ..text.number_format import adjacency, delta, percent
from .budget.composition import distinguishing_probability, two_values_epsilon

LISTED = 12  # so many possible answers are named one by one
CAREFUL, SOME, MUCH = Fraction(1), Fraction(3), Fraction(10)  # what a life's epsilon is called

_TAKES = {
    Takes.FIRST: "the first value",
    Takes.LAST: "the last value",
    Takes.ANY: "whether it was ever so",
    Takes.MAX: "the largest value",
    Takes.SUM: "the sum of the values",
    Takes.RETURNING: "whether you were there in the one before as well",
}


@dataclass(frozen=True, slots=True)
class Part:
    """One heading, and the text under it."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class CollectionNotice:
    """The notice of one collection."""

    app: str
    collection: str
    fingerprint: str
    parts: tuple[Part, ...]


def notice(collection: Collection, relay: str = "") -> CollectionNotice:
    """Return a collection's notice; `relay` operates the relay that the app sends through."""
    parts = (
        Part("What is asked", " ".join(_question(collection))),
        Part("What leaves your device", " ".join(_leaves(collection))),
        Part("How often", " ".join(_often(collection))),
        Part("What an answer gives away", " ".join(_gives_away(collection))),
        Part("What is not hidden", " ".join((*_public(collection), _route(relay)))),
        Part("What is kept, and how long", " ".join(_kept(collection))),
        Part("Whom to ask", " ".join(_whom(collection))),
    )
    return CollectionNotice(collection.app, collection.name, collection.fingerprint, parts)


def _central(collection: Collection) -> bool:
    return collection.model is Model.CENTRAL


# -- the question ----------------------------------------------------------------------------------


def _question(collection: Collection) -> Iterator[str]:
    yield f"\u201c{collection.question}\u201d"
    yield f"Possible answers: {_answers(collection)}."
    if isinstance(collection.domain, Cross):
        names = " and ".join(name for name, _ in collection.domain.attributes)
        yield f"The answer is sent together with {names}, as one."
    if collection.purpose:
        yield f"Why: {collection.purpose.rstrip('.')}."


def _answers(collection: Collection) -> str:
    domain = collection.domain
    answer = domain.answer if isinstance(domain, Cross) else domain
    if isinstance(answer, Number):
        low, high = float(answer.low), float(answer.high)
        return f"a number from {low:g} to {high:g}; one beyond is taken for the nearer end"
    if isinstance(answer, Boolean):
        return "yes or no"
    if isinstance(answer, Features):
        ends = [f"{name} ({float(n.low):g} to {float(n.high):g})" for name, n in answer.features]
        return (
            f"a number for each of {', '.join(ends)}; a report is about one or two of them, drawn"
        )
    if isinstance(answer, OpenStrings):
        return (
            f"any text of up to {MAX_LABEL} characters; the server reads how common a text is only"
            " by naming it, and a text that few people have is not found"
        )
    return _listed(answer)


def _listed(choice: Choice) -> str:
    if choice.size > LISTED:
        return f"one of {choice.size:,} values of a list that comes with the app"
    *most, last = map(str, choice.labels)
    return f"{', '.join(most)} or {last}"


# -- what leaves -----------------------------------------------------------------------------------


def _leaves(collection: Collection) -> Iterator[str]:
    if _central(collection):
        yield (
            "Your true answer, to the operator of the server, who is trusted with it. Noise is"
            " added there, before any result is shown."
        )
        return
    yield (
        "Your answer is changed at random on your device before it is sent, so that no single"
        " report says for certain what you answered. The true answer stays on the device."
    )
    yield "Only over many people do the random changes average out."


def _often(collection: Collection) -> Iterator[str]:
    unit, times = collection.unit, collection.answering
    if unit is Unit.USER:
        yield "Once."
    elif unit is Unit.EVENT:
        a_day = collection.per_period
        yield f"At most {_times(a_day)} a day, on {_periods(collection, 'day')}."
    else:
        yield f"At most once a {unit}, in {_periods(collection, unit)}."
    if unit is not Unit.EVENT:
        time = "" if collection.is_retention else " of that time"
        yield f"What counts is {_TAKES[collection.takes]}{time}{_heard(collection)}."
    last = collection.until - timedelta(days=1)
    yield f"Between {collection.start} and {last} (UTC)."
    if times * collection.per_period > 1:
        yield "The device keeps count, and sends no more than that."
    if collection.cohort is not None:
        yield f"Asked of about one person in {collection.cohort.of}, drawn beforehand by chance."
    if collection.twin is not None:
        yield f"Whoever is asked this is not asked {collection.twin}, and the reverse."


def _heard(collection: Collection) -> str:
    if collection.takes is Takes.FIRST or collection.held_on_device:
        return ""
    return ", as far as the first run of the app that recorded one tells it"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _periods(collection: Collection, unit: str) -> str:
    count, every = collection.answering, collection.periods
    plural = f"{unit}{'s' * (count != 1)}"
    if count == every:
        return f"each of {count:,} {plural}" if count > 1 else f"one {unit}"
    return f"{count:,} of {every:,} {unit}s, drawn beforehand by chance"


# -- what it tells ---------------------------------------------------------------------------------


def _gives_away(collection: Collection) -> Iterator[str]:
    """Epsilon in words: what the best guesser could make of what is seen."""
    times = collection.priced_answers
    seen = "what is released of one answer" if _central(collection) else "one report"
    if collection.is_trend:
        seen = "all of your reports together"
    yield (
        "Somebody who wonders which of two answers you gave, and holds both equally likely, is"
        " right half of the time without any data;"
        f" with {seen}, at most {percent(distinguishing_probability(collection))} of the time"
        f"{_with_all(collection, times)}."
    )
    yield (
        f"In the language of experts: epsilon {float(collection.epsilon_event):g} for one answer,"
        f" {float(collection.epsilon_day):g} for one day and {float(collection.epsilon_user):g}"
        f" for all of them, {_compares(collection)}{_delta(collection)};"
        f" {_verdict(two_values_epsilon(collection, collection.epsilon_user))}."
    )
    if collection.unit is Unit.EVENT:
        yield "Many answers about the same habit together tell more about the habit than one does."


def _delta(collection: Collection) -> str:
    if collection.delta is None:
        return ""
    return f", each with delta {delta(collection.delta)} (a chance that it does not hold)"


def _compares(collection: Collection) -> str:
    """Return the adjacency of the epsilons; between two values, an add-remove one counts twice."""
    stated = f"by {adjacency(collection.epsilon_adjacency)}"
    if collection.substitution_factor == 1:
        return f"{stated} (one answer or another)"
    doubled = float(two_values_epsilon(collection, collection.epsilon_user))
    return f"{stated} (with or without an answer; between two answers, {doubled:g} for all of them)"


def _with_all(collection: Collection, times: int) -> str:
    if times == 1:
        return ""
    every = distinguishing_probability(collection, times)
    whose = "all releases" if _central(collection) else f"all {times:,} reports"
    return f"; with {whose}, if your answer never changes, at most {percent(every)}"


def _verdict(epsilon: Fraction) -> str:
    """Return what a whole campaign's epsilon is worth, in a word."""
    if epsilon <= CAREFUL:
        return "that is careful"
    if epsilon <= SOME:
        return "that still leaves much doubt"
    if epsilon <= MUCH:
        return "over the whole time that leaves some doubt, not much"
    return "over the whole time that leaves little doubt to somebody who can join all of it"


def _public(collection: Collection) -> Iterator[str]:
    if _central(collection):
        yield "To the operator of the server, your true answer. And:"
    if collection.presence is Presence.HIDDEN:
        yield (
            "That the app runs and takes part. Whether you used what is asked about is hidden:"
            " everybody sends the same number of reports."
        )
    elif collection.unit is Unit.EVENT:
        yield "That you answered, when, and how often."
    elif collection.unit is Unit.USER:
        yield "Whether you answered."
    else:
        yield f"In which {collection.unit}s you answered."
    for segment, labels in collection.segments:
        yield f"Sent in clear: {segment} ({', '.join(map(str, labels))})."
    yield _LINKED[collection.linkage or Linkage.PERIOD]


def _route(relay: str) -> str:
    if relay:
        return (
            f"Reports are sent through {relay}, who sees your address and no report; the server"
            " sees reports and no address. Both together could join them."
        )
    return (
        "Whoever runs the network sees your address when a report is sent; the server does not"
        " write it down."
    )


_LINKED = {
    Linkage.COLLECTION: "Your reports to this question can be recognized as one person's, under a"
    " random name that is used for nothing else.",
    Linkage.PERIOD: "Reports of one period can be recognized as one person's; those of different"
    " periods carry different random names.",
    Linkage.NONE: "Each report carries a random name of its own.",
    Linkage.TOKEN: "Each report carries a random name of its own, and a token that was signed for"
    " your account without being seen: nobody can tell from it whose report it is.",
}


def _kept(collection: Collection) -> Iterator[str]:
    if _central(collection):
        yield "The server adds your answer to a count and keeps the count, not the answer."
    else:
        yield "The server adds your report to counts and keeps the counts, not the report."
    yield "Counts are kept without an end: nobody's part can be taken out of them again."
    days = collection.late + (GRACE + RECOVERABLE).days
    linked = collection.linkage is Linkage.COLLECTION
    after = "the last day" if linked else "its period's end"
    yield (
        "That a report of your random name has arrived is remembered, so that none counts twice,"
        f" until {days} days after {after}."
    )
    yield from _waits(collection)
    yield (
        f"On your device a report that cannot be sent waits until {collection.late} days after its"
        " period."
    )


def _waits(collection: Collection) -> Iterator[str]:
    """Where a value stays until its report is made, or until a curator has it."""
    if _central(collection):
        what, end = "your true answer", "it is delivered"
    elif collection.is_retention or collection.is_trend:
        what = "when you were there last" if collection.is_retention else "the last answer"
        end = "the end of the campaign"
    elif collection.takes is not Takes.FIRST:
        what, end = "what was recorded so far", "the report is made from it"
    else:
        return
    if collection.held_on_device:
        yield (
            f"Until {end}, {what} is kept on your device's disk, readable by the app's user only;"
            " it is wiped then, and when you withdraw your consent or have it forgotten."
        )
    else:
        yield (f"Until {end}, {what} is in the app's memory only, and lost if the app is killed.")


def _whom(collection: Collection) -> Iterator[str]:
    if collection.owner:
        yield f"{collection.owner}."
    else:
        yield f"The people who make {collection.app}."
    yield f"This question's fingerprint is {collection.fingerprint[:16]}."
