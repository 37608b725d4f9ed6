"""The statements of a notice: which sentences a definition makes true, and their figures.

A statement is a key of MESSAGES with the values that fill it, so that a text in any language states
the same. Every key of a definition that matters to a person is in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from ..collection import Collection, Linkage, Presence, Takes
from ..collection.definition import Wording
from ..definition_record import BatchRules
from ..errors import format_value
from ..guessing import distinguishing_probability, times_in_twenty, two_values_epsilon
from ..periods import GRACE, RECOVERABLE, Unit
from ..shuffling.times import KEPT_FOR_AGGREGATOR, TAKEN_FOR
from .messages import Count, Texts

CAREFUL, MUCH, SOME = Fraction(1), Fraction(3), Fraction(10)  # the doubt that an epsilon leaves
SHOWN_DIGITS = 16  # of a fingerprint


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence or a few: a key of MESSAGES, and the values that fill it."""

    key: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class NoticePart:
    """One heading, as a key of MESSAGES, and the statements under it."""

    title: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class NoticeText:
    """One heading and the text under it, in one language."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """The notice of one collection."""

    app: str
    collection: str
    fingerprint: str
    question: str
    guess_one: Fraction  # a right guess between two answers, at most, from one answer
    guess_all: Fraction  # from all of them
    parts: tuple[NoticePart, ...]

    def texts(self, texts: Texts | None = None) -> tuple[NoticeText, ...]:
        """Return the parts in words, in English by default."""
        words = texts or Texts()
        return tuple(
            NoticeText(
                words(part.title),
                " ".join(words(statement.key, **statement.values) for statement in part.statements),
            )
            for part in self.parts
        )


def notice(
    collection: Collection,
    *,
    relay: str | None = None,
    shuffler: str = "",
    by_app: bool = False,
    language: str = "",
    composed: Fraction | None = None,
) -> Notice:
    """Return the notice of a collection.

    `language` chooses among the definition's own texts; the sentences are translated by `Texts`.
    `relay` is the operator of the relay that reports are sent through, "" if it has no name here,
    None if there is no relay. `by_app`: the app's server randomizes and sends for many persons.
    `shuffler` is the operator of the shuffler, "" if it has no name here; whether there is one says
    the definition. `composed` is epsilon against the server over all reports of a shuffled
    collection, where it was computed: a device has no analysis, and states that of one report.
    """
    one = distinguishing_probability(collection)
    every = distinguishing_probability(collection, collection.priced_answers)
    wording = collection.wording(language)
    parts = {
        "question": _question(collection, wording),
        "sent": [_sent(collection, by_app=by_app)],
        "frequency": _frequency(collection),
        "guess": _guess(collection, one, every, composed),
        "public": [*_public(collection), *_route(collection, relay, shuffler, by_app=by_app)],
        "kept": _kept(collection),
        "withdrawal": _withdrawal(collection),
        "owner": _owner(collection),
    }
    return Notice(
        collection.app,
        collection.name,
        collection.fingerprint,
        wording.question,
        one,
        every,
        tuple(
            NoticePart(f"notice_title_{key}", tuple(statements))
            for key, statements in parts.items()
        ),
    )


def _state(key: str, **values: object) -> Statement:
    return Statement(f"notice_{key}", values)


def _linkage(collection: Collection) -> Linkage:
    return collection.linkage or Linkage.PERIOD  # filled in at birth


def _sentence(text: str) -> str:
    """Return a text of the definition's author as a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


# -- the question ----------------------------------------------------------------------------------


def _question(collection: Collection, wording: Wording) -> Iterator[Statement]:
    if wording.purpose:
        yield _state("purpose", purpose=_sentence(wording.purpose))
    else:
        yield _state("no_purpose")
    for key, values in wording.domain.answers():
        yield _state(key, **{name: _counted(value) for name, value in values.items()})
    if collection.measure is not None:
        yield _state(f"measure_{collection.measure}")


def _counted(value: object) -> object:
    """Return a number as one that chooses between singular and plural."""
    return Count(value) if isinstance(value, int) else value


def _sent(collection: Collection, *, by_app: bool) -> Statement:
    if collection.trust.reveals:
        return _state("true_value")
    return _state("randomized_by_app" if by_app else "randomized")


# -- how often, and until when ---------------------------------------------------------------------


def _frequency(collection: Collection) -> Iterator[Statement]:
    yield _often(collection)
    if collection.unit is not Unit.EVENT:
        yield _state(f"takes_{collection.takes}")
    if _is_of_first_run(collection):
        yield _state("first_run")
    if collection.changes is not None:
        yield _state("changes", changes=Count(collection.changes))
    last = collection.until - timedelta(days=1)
    yield _state("dates", first=str(collection.start), last=str(last))
    yield _state(f"cap_{_linkage(collection)}")
    if collection.cohort is not None:
        yield _state("cohort", of=Count(collection.cohort.of))
    if collection.group is not None:
        questions = collection.group.questions
        yield _state("group", of=Count(len(questions)), questions=", ".join(questions))
    if collection.twin is not None:
        yield _state("twin", twin=collection.twin)
    if collection.replaces is not None:
        yield _state("replaces", replaces=collection.replaces)


def _often(collection: Collection) -> Statement:
    if collection.unit is Unit.USER:
        return _state("often_user")
    drawn = "_drawn" if collection.answering < collection.periods else ""
    return _state(
        f"often_{collection.unit}{drawn}",
        times=Count(collection.per_day),
        answering=Count(collection.answering),
        periods=Count(collection.periods),
    )


def _is_of_first_run(collection: Collection) -> bool:
    """Whether what a later run of the app records is not counted any more."""
    return collection.takes is not Takes.FIRST and not collection.held_on_device


# -- what an answer gives away ---------------------------------------------------------------------


def _guess(
    collection: Collection, one: Fraction, every: Fraction, composed: Fraction | None
) -> Iterator[Statement]:
    yield _state("guess")
    promise = _promise(collection)
    if promise is not None:
        yield _state("guess_together")
    yield _state(f"guess_{_guessed_from(collection)}", one=times_in_twenty(one))
    reports = collection.priced_answers
    if reports > 1:
        key = "guess_releases" if collection.trust.reveals else "guess_reports"
        yield _state(key, reports=Count(reports), all=times_in_twenty(every))
    if promise is None:
        yield from _epsilons(collection)
    else:
        yield from _two_adversaries(collection, promise, composed)
    if collection.unit is Unit.EVENT:
        yield _state("habit")
    yield _state("common")


def _epsilons(collection: Collection) -> Iterator[Statement]:
    doubled = two_values_epsilon(collection, collection.epsilon_user)
    yield _state(
        f"epsilon_{collection.epsilon_adjacency}",
        event=format_value(collection.epsilon_event),
        day=format_value(collection.epsilon_day),
        user=format_value(collection.epsilon_user),
        doubled=format_value(doubled),
    )
    if collection.delta is not None:
        yield _state("delta", delta=format_value(collection.delta))
    if collection.noise is not None:
        yield _state("noise")
    yield _state(_doubt(doubled))


def _promise(collection: Collection) -> BatchRules | None:
    """Return the rules of a batch that promise something against the server alone."""
    rules = collection.batch
    return None if rules is None or rules.epsilon is None else rules


def _two_adversaries(
    collection: Collection, promise: BatchRules, composed: Fraction | None
) -> Iterator[Statement]:
    """Yield what both together reach, then the server alone: the figure that needs no trust first.

    What the whole campaign is worth is said of both together too.
    """
    reports = Count(collection.priced_answers)
    user = format_value(collection.epsilon_user)
    own = format_value(collection.unit_epsilon)
    yield _state("epsilon_together", own=own, user=user, reports=reports)
    yield _state(_doubt(collection.epsilon_user))
    figures = {"epsilon": format_value(promise.epsilon), "delta": format_value(promise.delta)}
    if composed is None:
        yield _state("epsilon_server", **figures)
    else:
        shown = format_value(composed)
        yield _state("epsilon_server_in_all", **figures, composed=shown, reports=reports)
    yield _state("two_adversaries")


def _guessed_from(collection: Collection) -> str:
    if collection.trust.reveals:
        return "release"
    return "trend" if collection.is_trend else "report"


def _doubt(epsilon: Fraction) -> str:
    """Return the key of what a whole campaign's epsilon is worth."""
    for most, doubt in ((CAREFUL, "most"), (MUCH, "much"), (SOME, "some")):
        if epsilon <= most:
            return f"doubt_{doubt}"
    return "doubt_little"


# -- what is not hidden ----------------------------------------------------------------------------


def _public(collection: Collection) -> Iterator[Statement]:
    if collection.trust.reveals:
        yield _state("curator")
    is_hidden = collection.presence is Presence.HIDDEN
    yield _state(f"presence_{'hidden' if is_hidden else collection.unit}")
    for segment, labels in collection.segments:
        yield _state("segment", segment=segment, labels=", ".join(map(str, labels)))
    if collection.batch is not None and collection.linkage is Linkage.NONE:
        yield _state("linkage_batch")
        return
    tokens = (collection.tokens or "")[:SHOWN_DIGITS]
    yield _state(f"linkage_{_linkage(collection)}", tokens=tokens)


def _route(
    collection: Collection, relay: str | None, shuffler: str, *, by_app: bool
) -> Iterator[Statement]:
    if by_app:
        yield _state("app_server")
    if collection.batch is not None:
        if not by_app:
            yield _state("shuffler_address")
        yield from _shuffler(collection, collection.batch, shuffler)
    elif not by_app:
        yield from _connection(relay)


def _connection(relay: str | None) -> Iterator[Statement]:
    if relay is None:
        yield _state("direct")
        return
    yield _state("relay")
    if relay:
        yield _state("relay_operator", operator=relay)


def _shuffler(collection: Collection, rules: BatchRules, operator: str) -> Iterator[Statement]:
    yield _state("shuffler", grace=Count(rules.grace), least=Count(rules.least))
    if rules.covers:
        yield _state("shuffler_covers", covers=Count(rules.covers))
    if operator:
        yield _state("shuffler_operator", operator=operator)
    yield _state(f"shuffler_presence_{collection.presence}")


# -- what is kept, and for how long ----------------------------------------------------------------


def _kept(collection: Collection) -> Iterator[Statement]:
    yield _state("counted_true" if collection.trust.reveals else "counted")
    yield _row(collection)
    if collection.linkage is Linkage.TOKEN:
        yield _state("issuer_record")
    if collection.waiting:
        yield _state(f"waits_{collection.waiting}")
        yield _state("held_device" if collection.held_on_device else "held_process")
    if collection.batch is None:
        yield _state("late", late=Count(collection.late))
    else:
        days = collection.batch.grace + KEPT_FOR_AGGREGATOR.days
        yield _state("sending", grace=Count(collection.batch.grace))
        yield _state("shuffler_keeps", days=Count(days))


def _row(collection: Collection) -> Statement:
    """Return how long a random name is remembered; a report of a batch has none without a token."""
    if collection.batch is not None:
        days = collection.batch.grace + TAKEN_FOR.days
        has_row = collection.linkage is Linkage.TOKEN
        return _state("row_period", days=Count(days)) if has_row else _state("row_none")
    is_linked = collection.linkage is Linkage.COLLECTION
    days = collection.late + (GRACE + RECOVERABLE).days
    return _state("row_campaign" if is_linked else "row_period", days=Count(days))


def _withdrawal(collection: Collection) -> Iterator[Statement]:
    yield _state("withdrawal")
    yield _state("stays_counted")
    if collection.batch is not None:
        yield _state("stays_held")
    if collection.linkage is Linkage.TOKEN:
        yield _state("issuer_erases")


def _owner(collection: Collection) -> Iterator[Statement]:
    if collection.owner:
        yield _state("owner", owner=_sentence(collection.owner))
    else:
        yield _state("no_owner", app=collection.app)
    yield _state(
        "identity",
        name=collection.name,
        app=collection.app,
        fingerprint=collection.fingerprint[:SHOWN_DIGITS],
    )
