"""The receipt: what left this device and what it cost, as text for the person and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from veilcount_shared import Collection
from veilcount_shared.collection import Adjacency, Model, Presence
from veilcount_shared.epsilon import EPSILON_GRAIN
from veilcount_shared.errors import format_value

from ..state import ClientState, SentReport, SpentBudget, closed_series
from .budget_reservation import Reservation, micro

WAITING = "waiting"  # the status of what has not left yet
TRUE_VALUE = "the true value, not kept here once it has left"
NOT_COVERED = (
    "That you answered, and when, can be seen by the receiver (where presence is not hidden).",
    "Whoever sees your network address can connect what you send.",
    "What you have in common with others is learned from them, with or without you.",
)


ADJACENCY = {Adjacency.SUBSTITUTE.value: "substitution", Adjacency.ADD_REMOVE.value: "add-remove"}
NOT_RECORDED = "before forget() or under earlier definitions, adjacency not recorded"


@dataclass(frozen=True, slots=True)
class SpentTotal:
    """The epsilon spent under one model and one adjacency: only these may be added up."""

    model: str | None  # None: of what is no longer loaded
    adjacency: str | None
    epsilon: float

    def line(self) -> str:
        """Return the total in plain words."""
        label = NOT_RECORDED
        if self.model is not None and self.adjacency is not None:
            label = f"{self.model}, {ADJACENCY[self.adjacency]}"
        return f"{label}: epsilon {self.epsilon:g}"


@dataclass(frozen=True, slots=True)
class ReceiptEntry:
    """The part of a receipt on one collection."""

    name: str
    question: str
    model: str
    adjacency: str  # of every epsilon here
    spent: float
    event: str
    day: str
    life: str
    frozen: int  # answers that were drawn and will not be drawn again
    sent: tuple[Mapping[str, Any], ...]
    closed: bool  # the receiver accepts no more

    def lines(self) -> list[str]:
        """Return the entry in plain words."""
        how = "a true value, to a trusted curator" if self.model == "central" else "randomized"
        figures = f"{self.event} an answer, {self.day} a day, {self.life} in all"
        return [
            f"{self.question} [{self.name}]",
            f"  {how}; epsilon ({ADJACENCY[self.adjacency]}) {figures}",
            f"  spent {self.spent:g} of {self.life}; {self.frozen} answers given",
            *(["  closed: no more reports are accepted"] if self.closed else []),
            *(
                f"  {each['status']}: period {each['period']}, {each['description']}"
                for each in self.sent
            ),
        ]


@dataclass(frozen=True, slots=True)
class Receipt:
    """All collections of one person.

    `charged` is the plain sum of all stated epsilons, whatever their adjacency: what the device
    holds against its `ceiling`, and no privacy figure.
    """

    entries: tuple[ReceiptEntry, ...]
    spent: tuple[SpentTotal, ...]
    charged: float
    ceiling: float
    losses: Mapping[str, int]

    def text(self) -> str:
        """Return the receipt for a person to read."""
        lines = [line for entry in self.entries for line in (*entry.lines(), "")]
        lines += ["Over all collections:", *(f"  {total.line()}" for total in self.spent)]
        lines.append(
            f"  limit on this device: {self.charged:g} of at most {self.ceiling:g}, the plain sum"
            " of the stated epsilons (a safety limit, no privacy figure)"
        )
        lines += [f"Not recorded, {reason}: {count}" for reason, count in self.losses.items()]
        return "\n".join([*lines, "", "What this does not cover:", *NOT_COVERED])

    def json(self) -> dict[str, Any]:
        """Return the receipt as JSON values."""
        return {
            "collections": [asdict(entry) for entry in self.entries],
            "spent": [asdict(total) for total in self.spent],
            "charged": self.charged,
            "ceiling": self.ceiling,
            "losses": dict(self.losses),
            "not_covered": list(NOT_COVERED),
        }


@dataclass(frozen=True, slots=True)
class ReportExample:
    """What a report of a collection looks like, and how its message is drawn."""

    collection: str
    mechanism: Mapping[str, Any]
    message_bits: int
    message_bytes: int
    dummy: str  # of a fixed message that nobody recorded
    distribution: str


def receipt(
    state: ClientState, key: bytes, collections: Mapping[str, Collection], reservation: Reservation
) -> Receipt:
    """Return the receipt of a person over all collections."""
    spent, sent = state.spent(key), state.sent(key)
    names = {each.fingerprint: name for name, each in collections.items()}
    over = closed_series(state, names)
    entries = [
        _entry(
            collection,
            reservation,
            spent,
            sent,
            state.used(key, series := collection.fingerprint),
            closed=series in over,
        )
        for collection in collections.values()
    ]
    losses: Counter[str] = Counter()
    for (reason, where), count in state.losses().items():
        name = names.get(where, where)  # on the way, losses are kept by series
        losses[f"{reason.value}{f' ({name})' if name else ''}"] += count
    charged = sum(each.life for each in spent.values())
    return Receipt(
        tuple(entries),
        tuple(_totals(collections.values(), entries, charged)),
        charged / EPSILON_GRAIN,
        reservation.ceilings.life / EPSILON_GRAIN,
        dict(+losses),
    )


def _totals(
    collections: Iterable[Collection], entries: Iterable[ReceiptEntry], charged: int
) -> Iterator[SpentTotal]:
    """Yield one total per model and adjacency, then what belongs to no loaded definition.

    A lineage may have spent under a definition of another adjacency, so only the answers of the
    loaded one count for its own.
    """
    spent: Counter[tuple[str, str]] = Counter()
    for collection, entry in zip(collections, entries, strict=True):
        answered = entry.frozen * micro(collection.unit_epsilon)
        spent[entry.model, entry.adjacency] += min(answered, round(entry.spent * EPSILON_GRAIN))
    for (model, adjacency), epsilon in sorted((+spent).items(), reverse=True):
        yield SpentTotal(model, adjacency, epsilon / EPSILON_GRAIN)
    if charged > spent.total():
        yield SpentTotal(None, None, (charged - spent.total()) / EPSILON_GRAIN)


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


def _entry(
    collection: Collection,
    reservation: Reservation,
    spent: Mapping[str, SpentBudget],
    sent: list[SentReport],
    used: tuple[int, int],
    *,
    closed: bool,
) -> ReceiptEntry:
    claim = reservation.claims.get(collection.name)
    life = spent[claim.lineage].life if claim and claim.lineage in spent else 0
    return ReceiptEntry(
        collection.name,
        collection.question,
        collection.model.value,
        collection.epsilon_adjacency.value,
        life / EPSILON_GRAIN,
        format_value(collection.epsilon_event),
        format_value(collection.epsilon_day),
        format_value(collection.epsilon_user),
        used[1],
        tuple(
            _entry_report(collection, each)
            for each in sent
            if each.report.fingerprint == collection.fingerprint
        ),
        closed,
    )


def _entry_report(collection: Collection, sent: SentReport) -> dict[str, Any]:
    is_true = collection.model is Model.CENTRAL
    is_wiped = is_true and sent.status != WAITING  # what the state has in its place is no message
    return {
        "status": sent.status,
        "period": sent.report.period,
        "segment": sent.report.segment,
        "message": "" if is_wiped else sent.report.message.hex(),
        "description": (
            TRUE_VALUE if is_true else _describe_message(collection, sent.report.message)
        ),
    }


def _describe_message(collection: Collection, packed: bytes) -> str:
    """Return a randomized answer as a person can read it."""
    labels = list(getattr(collection.domain, "labels", range(collection.mechanism.inputs)))
    if collection.presence is Presence.HIDDEN:
        labels.append("absent")
    message = collection.unpack(packed)
    return f"randomized answer {collection.mechanism.describe_message(message, labels)}"
