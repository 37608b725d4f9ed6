"""The receipt: what left this device and what it cost, as text for the person and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from veilcount_shared import Collection
from veilcount_shared.budget_claims import micro
from veilcount_shared.composition import guessing_probability
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.errors import format_value
from veilcount_shared.guessing import distinguishing_probability

from ..settings import ClientSettings
from ..state import SentReport, SpentBudget, StateError, closed_series
from ..state.losses import Loss
from .budget_reservation import Reservation
from .kept_values import KeptValue, kept_values, unsent_values
from .known_definitions import KnownDefinition, known_definitions
from .receipt_contents import EarlierEntry, ReceiptContents, ReceiptEntry, SpentTotal
from .recorder import Recorder

if TYPE_CHECKING:
    from veilcount_shared.notice import Notice

WAITING = "waiting"  # the status of what has not left yet
DELIVERED = "delivered"
SENT = "sent"  # what a shuffler holds: whether it was counted is known to nobody
TRUE_VALUE = "the true value, not kept here once it has left"


@dataclass(frozen=True, slots=True)
class Receipt(ReceiptContents):
    """What left this device and what it cost one person, over all collections."""

    @classmethod
    def empty(cls, problem: str) -> Receipt:
        """Return a receipt that says why it is empty."""
        return cls((), (), 0.0, 0.0, {}, problem=problem)

    def html(self, messages: Mapping[str, object] | None = None, language: str = "en") -> str:
        """Return the receipt as a page of its own: no script, nothing to load.

        `messages` replaces texts, by the keys of `receipt_messages.MESSAGES`.
        """
        from .receipt_html import page  # noqa: PLC0415 - no app's start waits for a page

        return page(self, messages, language)


@dataclass(frozen=True, slots=True)
class ReportExample:
    """What a report of a collection looks like, and how its message is drawn."""

    collection: str
    mechanism: Mapping[str, Any]
    message_bits: int
    message_bytes: int
    dummy: str  # of a fixed message that nobody recorded
    distribution: str


def receipt(  # noqa: PLR0917 - one call, from the client
    recorder: Recorder,
    key: bytes,
    collections: Mapping[str, Collection],
    reservation: Reservation,
    settings: ClientSettings,
    language: str = "",
) -> Receipt:
    """Return the receipt of a person over all collections, in a language that they have."""
    state = recorder.state
    loaded = {
        collection.fingerprint: KnownDefinition.from_collection(
            collection, _lineage(collection, reservation)
        )
        for collection in collections.values()
    }
    account = _Account(state.spent(key), state.sent(key), known_definitions(state) | loaded)
    over = closed_series(state, loaded)
    entries = tuple(
        account.entry(
            collection,
            respondent_notice(collection, settings, language),
            language,
            closed=collection.fingerprint in over,
            values=(
                *kept_values(recorder, key, collection),
                *unsent_values(recorder, key, collection),
            ),
        )
        for collection in collections.values()
    )
    return Receipt(
        entries,
        tuple(account.totals()),
        account.charged / EPSILON_GRAIN,
        reservation.ceilings.life / EPSILON_GRAIN,
        _losses(recorder, {series: definition.name for series, definition in loaded.items()}),
        tuple(account.earlier(loaded)),
    )


def _losses(recorder: Recorder, names: Mapping[str, str]) -> dict[str, int]:
    """Count the losses by reason and collection, without the true values on their way."""
    with suppress(StateError):  # to count them another time
        recorder.write_losses()
    losses: Counter[tuple[Loss, str]] = Counter()
    for (reason, where), count in recorder.state.losses().items():
        losses[reason, names.get(where, where)] += count  # some are kept by series
    for name in names.values():
        losses[Loss.CRASHED, name] -= recorder.count_unsent(name)
    return {
        f"{reason.value}{f' ({name})' if name else ''}": count
        for (reason, name), count in (+losses).items()
    }


def respondent_notice(
    collection: Collection, settings: ClientSettings, language: str = ""
) -> Notice:
    """Return the notice of a collection as this client records and sends it."""
    from veilcount_shared.notice import notice  # noqa: PLC0415 - no app's start waits for a page

    relay = None if settings.relay is None else ""
    return notice(
        collection,
        relay=relay,
        shuffler=settings.shuffler_host,
        by_app=settings.persons,
        language=language,
    )


def _lineage(collection: Collection, reservation: Reservation) -> str:
    claim = reservation.claims.get(collection.name)
    return claim.lineage if claim else collection.name


@dataclass(frozen=True)
class _Account:
    """What the state has of one person, with the definitions that it belongs to."""

    spent: Mapping[str, SpentBudget]  # by lineage
    sent: list[SentReport]
    known: Mapping[str, KnownDefinition]  # by fingerprint, the oldest first

    @property
    def charged(self) -> int:
        return sum(value.life for value in self.spent.values())

    def forms(self, lineage: str) -> list[KnownDefinition]:
        """Return the definitions that one question ever had."""
        return [form for form in self.known.values() if form.lineage == lineage]

    def reports(self, fingerprint: str) -> list[SentReport]:
        return [report for report in self.sent if report.report.fingerprint == fingerprint]

    def entry(
        self,
        collection: Collection,
        collection_notice: Notice,
        language: str,
        *,
        closed: bool,
        values: tuple[KeptValue, ...],
    ) -> ReceiptEntry:
        definition = self.known[collection.fingerprint]
        budget, reports = self.spent.get(definition.lineage), self.reports(collection.fingerprint)
        life = budget.life if budget else 0
        is_only_form = len(self.forms(definition.lineage)) == 1
        answers = max(life // micro(collection.unit_epsilon), len(reports))
        one, every = _guesses(collection, Fraction(life, EPSILON_GRAIN), answers, is_only_form)
        return ReceiptEntry(
            collection.name,
            collection_notice.question,
            collection.model.value,
            collection.epsilon_adjacency.value,
            life / EPSILON_GRAIN,
            format_value(collection.epsilon_event),
            format_value(collection.epsilon_day),
            format_value(collection.epsilon_user),
            definition.start,
            definition.until,
            answers if is_only_form else None,
            one,
            every,
            tuple(_entry_report(collection, definition, report, language) for report in reports),
            closed,
            collection_notice,
            "" if collection.delta is None else format_value(collection.delta),
            values,
        )

    def earlier(self, loaded: Container[str]) -> Iterator[EarlierEntry]:
        """Yield what is kept under definitions that are no longer loaded."""
        current = {form.lineage for form in self.known.values() if form.fingerprint in loaded}
        newest = {form.lineage: form for form in self.known.values()}
        for definition in self.known.values():
            if definition.fingerprint in loaded:
                continue
            lineage, reports = definition.lineage, self.reports(definition.fingerprint)
            ended = lineage not in current and newest[lineage] is definition
            life = self.spent[lineage].life if ended and lineage in self.spent else 0
            if reports or life:
                yield EarlierEntry(
                    definition.name,
                    definition.question,
                    definition.start,
                    definition.until,
                    life / EPSILON_GRAIN,
                    tuple(_earlier_report(definition, report) for report in reports),
                )
        for lineage, budget in self.spent.items():
            if lineage not in newest:
                yield EarlierEntry(lineage, "", "", "", budget.life / EPSILON_GRAIN, ())

    def totals(self) -> Iterator[SpentTotal]:
        """Yield one total per model and adjacency, then what cannot be assigned to one.

        A lineage spends from one account: only if all its forms agree is it known for what.
        """
        spent: Counter[tuple[str, str]] = Counter()
        for lineage, budget in self.spent.items():
            kinds = {(form.model, form.adjacency) for form in self.forms(lineage)}
            if len(kinds) == 1:
                spent[kinds.pop()] += budget.life
        for (model, adjacency), epsilon in sorted((+spent).items(), reverse=True):
            yield SpentTotal(model, adjacency, epsilon / EPSILON_GRAIN)
        if self.charged > spent.total():
            yield SpentTotal(None, None, (self.charged - spent.total()) / EPSILON_GRAIN)


def _guesses(
    collection: Collection,
    spent: Fraction,
    answers: int,
    is_only_form: bool,  # noqa: FBT001
) -> tuple[Fraction | None, Fraction | None]:
    """Return the chance of a right guess between two answers, at most: from one report, from all.

    Of an unchanging answer; the plain sum of epsilon bounds what several forms reveal together.
    """
    if collection.trust.reveals:
        return None, None  # the curator sees the true value
    one = distinguishing_probability(collection)
    if not spent:
        return one, None
    priced = min(answers, collection.priced_answers)
    if is_only_form and priced:
        return one, distinguishing_probability(collection, priced)
    return one, guessing_probability(spent, 1)


def example(collection: Collection) -> ReportExample:
    """Return the format and the distribution of a collection's reports."""
    dummy = next(m for m in range(1 << collection.message_bits) if collection.mechanism.valid(m))
    return ReportExample(
        collection.name,
        collection.mechanism.canonical(),
        collection.message_bits,
        collection.message_bytes,
        collection.pack(dummy).hex(),
        collection.mechanism.describe(),
    )


def _entry_report(
    collection: Collection, definition: KnownDefinition, sent: SentReport, language: str
) -> dict[str, Any]:
    is_true = collection.trust.reveals
    is_wiped = is_true and sent.status != WAITING  # the state stores a placeholder for the message
    answer = "" if is_true else collection.describe_message(sent.report.message, language)
    is_sent = collection.batch is not None and sent.status == DELIVERED
    return {
        "status": SENT if is_sent else sent.status,
        "period": sent.report.period,
        "when": definition.period_label(sent.report.period),
        "segment": sent.report.segment,
        "message": "" if is_wiped else sent.report.message.hex(),
        "answer": answer,
        "description": f"randomized answer {answer}" if answer else TRUE_VALUE,
    }


def _earlier_report(definition: KnownDefinition, sent: SentReport) -> dict[str, str]:
    return {"status": sent.status, "when": definition.period_label(sent.report.period)}
