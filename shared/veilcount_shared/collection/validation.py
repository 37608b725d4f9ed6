"""Validation rules of a definition, one function each; errors name key, value and fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from fractions import Fraction

from ..definition_record import Definition
from ..domain import check_labels
from ..enums import Adjacency, Held, Linkage, Measure, Model, Noise, Presence, Takes
from ..epsilon import parse_epsilon
from ..errors import DefinitionError, EpsilonError
from ..kinds import kind_of
from ..limits import MAX_CELLS, MAX_SLOTS
from ..models import PRICE_KEYS, TRUST_MODELS
from ..periods import Unit, period_name
from .batches import check_batch
from .margins import check_margins
from .texts import check_texts

LONG = frozenset({Unit.WEEK, Unit.MONTH, Unit.USER})


_TAKES_FIXES = {
    Takes.ANY: 'only for boolean = true: use "first" or "last"',
    Takes.MAX: 'only for a range: use "first" or "last"',
    Takes.SUM: 'only for a range: use "first" or "last"',
    Takes.RETURNING: "the answer is yes or no: boolean = true",
}


def takes(collection: Definition) -> None:
    """The aggregation within a period must suit the kind."""
    if collection.takes is not Takes.FIRST and collection.unit is Unit.EVENT:
        fix = "every event is reported: remove takes"
        raise DefinitionError("takes", str(collection.takes), fix)
    if collection.takes not in kind_of(collection.domain, collection.measure).takes:
        raise DefinitionError("takes", str(collection.takes), _TAKES_FIXES[collection.takes])


def retention(collection: Definition) -> None:
    """Whether a person came back is known to their device alone, which keeps their last period."""
    if not collection.is_retention:
        return
    if collection.unit in {Unit.EVENT, Unit.USER} or collection.periods == 1:
        fix = 'there is no period before: give a "day", "week" or "month", and several of them'
        raise DefinitionError("unit", str(collection.unit), fix)
    if collection.held is not Held.DEVICE:
        raise DefinitionError("held", str(collection.held), 'a visit outlives a process: "device"')
    if collection.linkage is Linkage.COLLECTION and collection.presence is Presence.PUBLIC:
        fix = 'one pseudonym for all periods would show who comes back: use "period"'
        raise DefinitionError("linkage", "collection", fix)


def held(collection: Definition) -> None:
    """`held` is required where a value is pending for long, and refused where none is pending."""
    where = collection.held
    # An app that restarts within a long period would silently report its first run only.
    if where is None and collection.unit in LONG and collection.takes is not Takes.FIRST:
        raise DefinitionError(
            "held",
            None,
            f'a {collection.unit} with takes = "{collection.takes}" needs it:'
            ' held = "process" (the answer is about the first process that recorded: a server that'
            ' never restarts) or held = "device" (the running value is kept on the device)',
        )
    # Of two processes one has the value, and the other would answer that there is none.
    is_hidden = collection.presence is Presence.HIDDEN and collection.takes is not Takes.FIRST
    if is_hidden and where is not Held.DEVICE:
        raise DefinitionError(
            "held",
            str(where or Held.PROCESS),
            f'with presence = "hidden" and takes = "{collection.takes}" another process of the app'
            ' would answer that nothing was recorded: held = "device" (kept on the device)',
        )
    waits = collection.takes is not Takes.FIRST or TRUST_MODELS[collection.model].reveals
    if where is not None and not waits:
        raise DefinitionError(
            "held",
            str(where),
            'only where takes is not "first", or for model = "central", does a value wait:'
            " remove held",
        )


def presence(collection: Definition) -> None:
    """Hidden presence needs an input of its own for `absent`."""
    if collection.presence is not Presence.HIDDEN:
        return
    if fix := kind_of(collection.domain, collection.measure).absent_fix:
        raise DefinitionError("presence", "hidden", fix)
    if collection.segments:
        raise DefinitionError(
            "presence", "hidden", "an absence has no segment to name: cross it instead"
        )


NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
NAME_FIX = "give a letter, then letters, digits, - or _ (63 at most)"
APP = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_COHORTS = 1024
MAX_LATE = 365
YEARS = range(2000, 3000)
MAX_DAYS = 36_525


def check_definition(collection: Definition) -> None:
    """Apply every rule, in the order in which a reader would want the errors."""
    for rule in _RULES:
        rule(collection)


def check_enums(collection: Definition) -> None:
    """Enumerated keys hold members, not strings: "local" is Model.LOCAL."""
    for key, kind in ENUMS.items():
        value = getattr(collection, key)
        if value is not None and not isinstance(value, kind):
            members = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
            raise DefinitionError(key, value, f"give one of {members}")


def names(collection: Definition) -> None:
    """Names travel in URLs and file names."""
    if not APP.fullmatch(collection.app):
        raise DefinitionError(
            "app", collection.app, "give a letter, then letters, digits, dots, - or _ (63 at most)"
        )
    for key, name in _names(collection):
        if not NAME.fullmatch(name):
            raise DefinitionError(key, name, NAME_FIX)


def price(collection: Definition) -> None:
    """Each trust model has a price, and only its own."""
    key = TRUST_MODELS[collection.model].price_key
    epsilon: Fraction | None = getattr(collection, key)
    for other in PRICE_KEYS:
        if other != key and getattr(collection, other) is not None:
            fix = f"a {collection.model} collection states {key} instead: remove {other}"
            raise DefinitionError(other, getattr(collection, other), fix)
    if epsilon is None:
        raise DefinitionError(key, None, f"a {collection.model} collection needs it: {key} = 1")
    try:
        parse_epsilon(epsilon)
    except EpsilonError as error:
        raise DefinitionError(key, epsilon, error.fix) from error


def dates(collection: Definition) -> None:
    """A campaign starts, ends, and lasts 100 years at most."""
    for key, day in (("from", collection.start), ("until", collection.until)):
        if day.year not in YEARS:
            raise DefinitionError(key, day, f"give a year {YEARS.start} to {YEARS.stop - 1}")
    if not collection.start < collection.until:
        raise DefinitionError(
            "until", collection.until, f"give a day after from = {collection.start}"
        )
    if (collection.until - collection.start).days > MAX_DAYS:
        raise DefinitionError("until", collection.until, "give a campaign of 100 years at most")


def counts(collection: Definition) -> None:
    """Every cap is attainable."""
    if collection.per_day != 1 and collection.unit is not Unit.EVENT:
        fix = f'a {collection.unit} has one answer: remove per_day, or set unit = "event"'
        raise DefinitionError("per_day", collection.per_day, fix)
    if not 1 <= collection.per_day <= MAX_SLOTS:
        raise DefinitionError("per_day", collection.per_day, f"give 1 to {MAX_SLOTS:,}")
    if collection.answers is not None and not 1 <= collection.answers <= collection.periods:
        fix = f"give 1 to {collection.periods}, the number of {period_name(collection.unit)}s"
        raise DefinitionError("answers", collection.answers, fix)
    if not 0 <= collection.late <= MAX_LATE:
        raise DefinitionError("late", collection.late, f"give 0 to {MAX_LATE} days")


def slots(collection: Definition) -> None:
    """An epoch's slots are a bitmap that the server keeps for each pseudonym."""
    if collection.slots > MAX_SLOTS:
        raise DefinitionError(
            "linkage",
            str(collection.linkage),
            f"{collection.slots:,} slots an epoch, at most {MAX_SLOTS:,}: use a longer unit,"
            ' nearer dates, or linkage = "period"',
        )


def tokens(collection: Definition) -> None:
    """Tokens are verified under the keys of a list that everybody has: its digest is pinned."""
    if collection.linkage is not Linkage.TOKEN:
        if collection.tokens is not None:
            fix = 'only for linkage = "token": remove it'
            raise DefinitionError("tokens", collection.tokens, fix)
        return
    if collection.tokens is None or not DIGEST.fullmatch(collection.tokens):
        raise DefinitionError(
            "tokens",
            collection.tokens,
            "give the SHA-256 of the issuer's keys: `veilcount issuer keys --collections FILE`"
            " makes them and writes it",
        )
    if collection.periods > MAX_SLOTS:
        fix = f"{collection.periods:,} keys, one a period, at most {MAX_SLOTS:,}: use a longer unit"
        raise DefinitionError("linkage", "token", fix)
    if TRUST_MODELS[collection.model].reveals:
        fix = 'a curator sees true values under a pseudonym: use "period" or "collection"'
        raise DefinitionError("linkage", "token", fix)
    if collection.answering >= collection.periods:
        raise DefinitionError("answers", collection.answers, _tokens_need(collection))


def _tokens_need(collection: Definition) -> str:
    """Return how to leave a period in which tokens can be fetched before they are needed."""
    late = f"tokens are fetched a period ahead, and only who consents before {collection.start}"
    if collection.periods == 1:
        return f"{late} could answer: use a shorter unit, or another linkage"
    most, unit = collection.periods - 1, period_name(collection.unit)
    return f"{late} could answer in every {unit}: give at most {most}"


#: the kind and the model whose noise a definition chooses: all others have one
NOISE_CHOSEN = ("strings", Model.CENTRAL)


def kind(collection: Definition) -> None:
    """The kind suits the trust model, and its own rules hold."""
    kind = kind_of(collection.domain, collection.measure)
    if collection.changes is not None and kind.fresh:
        fix = 'only for measure = "trend": remove it'
        raise DefinitionError("changes", collection.changes, fix)
    if collection.noise is not None and (kind.name, collection.model) != NOISE_CHOSEN:
        fix = 'only for values = "open" and model = "central": remove it'
        raise DefinitionError("noise", str(collection.noise), fix)
    if collection.model in kind.unsupported_models:
        key, fix = kind.unsupported_models[collection.model]
        value = getattr(collection, key)
        raise DefinitionError(key, None if value is None else str(value), fix)
    kind.check(collection, collection.domain)


def trust(collection: Definition) -> None:
    """The keys suit the trust model."""
    TRUST_MODELS[collection.model].check(collection)


def segments(collection: Definition) -> None:
    """Segments are few, closed and public; in the order of their names, or cells would differ."""
    order = [name for name, _ in collection.segments]
    if order != sorted(set(order)):
        raise DefinitionError("segments", order, "give each name once, in the order of the names")
    for name, labels in collection.segments:
        if len(labels) < 2:  # noqa: PLR2004 - one segment is everybody
            raise DefinitionError(f"segments.{name}", list(labels), "give at least two values")
        check_labels(f"segments.{name}", labels)
    if collection.cells > MAX_CELLS:
        raise DefinitionError(
            "segments",
            f"{collection.cells} cells",
            f"at most {MAX_CELLS}: fewer values, or cross a private attribute into the domain",
        )


def cohort(collection: Definition) -> None:
    """A cohort is one of several."""
    share = collection.cohort
    if share is None:
        return
    if not 2 <= share.of <= MAX_COHORTS:  # noqa: PLR2004 - one cohort is everybody
        raise DefinitionError("cohort.of", share.of, f"give 2 to {MAX_COHORTS:,}")
    if not 0 <= share.number < share.of:
        raise DefinitionError("cohort.number", share.number, f"give 0 to {share.of - 1}")


def group(collection: Definition) -> None:
    """A drawn question is answered by whom its group draws, and by nobody's other draw.

    A curator's noise is the same however many are asked, so there is nothing to gain from a draw.
    """
    if collection.group is None:
        return
    if collection.name not in collection.group.questions:
        raise DefinitionError("group", collection.group.name, f"it has no {collection.name}")
    if TRUST_MODELS[collection.model].reveals:
        fix = "a curator's noise is no less for a drawn question: leave it out of the group"
        raise DefinitionError("model", collection.model.value, fix)
    for key in ("cohort", "twin"):
        if getattr(collection, key) is not None:
            fix = f"a group draws who answers: remove {key}, or leave it out of the group"
            raise DefinitionError(key, _reference(collection, key), fix)


def _reference(collection: Definition, key: str) -> object:
    return collection.twin if key == "twin" else collection.cohort and asdict(collection.cohort)


def lineage(collection: Definition) -> None:
    """No collection is its own predecessor or twin."""
    for key in ("replaces", "twin"):
        if getattr(collection, key) == collection.name:
            raise DefinitionError(key, collection.name, "name another collection")


#: what the enumerated keys hold, in the order of their errors
ENUMS: dict[str, type[StrEnum]] = {
    "unit": Unit,
    "measure": Measure,
    "takes": Takes,
    "held": Held,
    "linkage": Linkage,
    "presence": Presence,
    "model": Model,
    "adjacency": Adjacency,
    "noise": Noise,
}
_RULES = (
    *(names, price, dates, counts, slots, tokens, kind, check_texts, takes, retention, held),
    *(presence, check_batch, trust, segments, check_margins, cohort, group, lineage),
)


def _names(collection: Definition) -> Iterator[tuple[str, str]]:
    yield "name", collection.name
    for key in ("twin", "replaces"):
        if (name := getattr(collection, key)) is not None:
            yield key, name
    for name, _ in collection.segments:
        yield "segments", name
    for key in ("attributes", "features", "questions"):
        for name, _ in getattr(collection.domain, key, ()):
            yield "cross" if key == "attributes" else key, name
    if collection.cohort:
        yield "cohort.draw", collection.cohort.draw
