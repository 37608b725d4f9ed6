"""The statements of a notice: which sentences a definition makes true, and their figures.

A statement is a key of MESSAGES with the values that fill it, so that a text in any language states
the same. Every key of a definition that matters to a person is in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from ..batch_rules import BatchRules
from ..collection import Collection, Linkage, Presence, Takes
from ..collection.definition import Wording
from ..errors import format_value
from ..guessing import distinguishing_probability, percent, two_values_epsilon
from ..periods import GRACE, RECOVERABLE, Unit
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
) -> Notice:
    """Return the notice of a collection.

    `language` chooses among the definition's own texts; the sentences are translated by `Texts`.
    `relay` is the operator of the relay that reports are sent through, "" if it has no name here,
    None if there is no relay; `shuffler` that of the shuffler, if it has a name here. `by_app`: the app's server randomizes and sends for many persons.
    """
    one = distinguishing_probability(collection)
    every = distinguishing_probability(collection, collection.priced_answers)
    wording = collection.wording(language)
    parts = {
        "question": _question(collection, wording),
        "sent": [_sent(collection, by_app=by_app)],
        "frequency": _frequency(collection),
        "guess": _guess(collection, one, every),
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


def _guess(collection: Collection, one: Fraction, every: Fraction) -> Iterator[Statement]:
    yield _state("guess")
    yield _state(f"guess_{_guessed_from(collection)}", one=percent(one))
    reports = collection.priced_answers
    if reports > 1:
        key = "guess_releases" if collection.trust.reveals else "guess_reports"
        yield _state(key, reports=Count(reports), all=percent(every))
    doubled = two_values_epsilon(collection, collection.epsilon_user)
    yield _state(
        f"epsilon_{collection.epsilon_adjacency}",
        event=format_value(collection.epsilon_event),
        day=format_value(collection.epsilon_day),
        user=format_value(collection.epsilon_user),
        doubled=format_value(doubled),
    )
    if collection.batch and collection.batch.epsilon is not None:
        promise = {key: getattr(collection.batch, key) for key in ("epsilon", "delta")}
        yield _state(
            "batch_epsilon", **{key: format_value(value) for key, value in promise.items()}
        )
    if collection.delta is not None:
        yield _state("delta", delta=format_value(collection.delta))
    yield _state(_doubt(doubled))
    if collection.unit is Unit.EVENT:
        yield _state("habit")
    yield _state("common")


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
    if collection.batch:
        yield from _batch(collection.batch, is_hidden=is_hidden)
    for segment, labels in collection.segments:
        yield _state("segment", segment=segment, labels=", ".join(map(str, labels)))
    tokens = (collection.tokens or "")[:SHOWN_DIGITS]
    is_unlinked = collection.batch and collection.linkage is Linkage.NONE
    scope = "batch" if is_unlinked else _linkage(collection)
    yield _state(f"linkage_{scope}", tokens=tokens)


def _batch(rules: BatchRules, *, is_hidden: bool) -> Iterator[Statement]:
    yield _state("batch", grace=Count(rules.grace), least=Count(rules.least))
    if rules.covers:
        yield _state("covers", covers=Count(rules.covers))
    yield _state("batch_count" if is_hidden else "batch_presence")


def _route(
    collection: Collection, relay: str | None, shuffler: str, *, by_app: bool
) -> Iterator[Statement]:
    if collection.batch:
        yield _state("shuffler")
        if shuffler:
            yield _state("shuffler_operator", operator=shuffler)
    elif by_app:
        yield _state("app_server")
    elif relay is None:
        yield _state("direct")
    else:
        yield _state("relay")
        if relay:
            yield _state("relay_operator", operator=relay)


# -- what is kept, and for how long ----------------------------------------------------------------


def _kept(collection: Collection) -> Iterator[Statement]:
    yield _state("counted_true" if collection.trust.reveals else "counted")
    if collection.batch:
        yield _state("batch_erased")
    else:
        is_linked = collection.linkage is Linkage.COLLECTION
        days = collection.late + (GRACE + RECOVERABLE).days
        yield _state("row_campaign" if is_linked else "row_period", days=Count(days))
    if collection.linkage is Linkage.TOKEN:
        yield _state("issuer_record")
    if collection.waiting:
        yield _state(f"waits_{collection.waiting}")
        yield _state("held_device" if collection.held_on_device else "held_process")
    if collection.batch:
        yield _state("sealed", grace=Count(collection.batch.grace))
    else:
        yield _state("late", late=Count(collection.late))


def _withdrawal(collection: Collection) -> Iterator[Statement]:
    yield _state("withdrawal")
    yield _state("stays_counted")
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
