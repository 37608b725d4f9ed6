"""Clients that read replies wrongly, or forget ages and closed rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from veilcount_client.delivery import backoff, decisions, transport
from veilcount_client.delivery.backoff import RowBackoff
from veilcount_client.delivery.closed_rows import ClosedRows
from veilcount_client.delivery.decisions import Effects
from veilcount_client.delivery.loss_reports import LossReports
from veilcount_client.delivery.transport import HttpTransport, Later, Outcome, Rejected, Reply
from veilcount_client.delivery.uploader import Uploader
from veilcount_client.state import QueuedReport
from veilcount_client.state.sqlite import SqliteState
from veilcount_shared.errors import WireError
from veilcount_shared.report import Report
from veilcount_shared.verdict import UNKNOWN_VERDICT, Verdict
from veilcount_shared.wire import decode_verdicts

from ...client.planting import Original, Plant, constant, do_nothing, in_place_of

# -- replies ---------------------------------------------------------------------------------------


@contextmanager
def draws_at_each_try() -> Iterator[None]:
    draws, original = Random(1), Uploader._send
    sent: set[Report] = set()

    def send(sender: Uploader, reports: list[Report]) -> Outcome:
        fresh = [_drawn_again(report, draws) if report in sent else report for report in reports]
        sent.update(reports)
        return original(sender, fresh)

    with patch.object(Uploader, "_send", send):
        yield


def _drawn_again(report: Report, draws: Random) -> Report:
    return replace(report, message=bytes([report.message[0] ^ draws.getrandbits(1)]))


@in_place_of(decisions, "decide_verdicts")
def sends_the_whole_body_again(
    original: Original, reports: Sequence[QueuedReport], verdicts: Sequence[str]
) -> Effects:
    effects: Effects = original(reports, verdicts)
    return Effects(retried=reports) if effects.retried else effects


@in_place_of(decisions, "decide_verdicts")
def sends_nothing_again(
    original: Original, reports: Sequence[QueuedReport], verdicts: Sequence[str]
) -> Effects:
    effects: Effects = original(reports, verdicts)
    numbers = [report.number for report in effects.retried]
    return replace(effects, delivered=[*effects.delivered, *numbers], retried=())


def _misreading(wrong: Callable[[str], str]) -> Plant:
    """Return a plant that takes a verdict for another."""

    @in_place_of(decisions, "decide_verdicts")
    def plant(original: Original, reports: Sequence[QueuedReport], words: Sequence[str]) -> Any:
        return original(reports, [wrong(word) for word in words])

    return plant


@in_place_of(transport, "decode_verdicts")
def refuses_unknown_verdicts(original: Original, body: bytes, reports: int) -> tuple[str, ...]:
    words: tuple[str, ...] = original(body, reports)
    if UNKNOWN_VERDICT in words:
        raise WireError("verdicts", "unknown")
    return words


@in_place_of(transport, "decode_verdicts")
def refuses_unknown_members(original: Original, body: bytes, reports: int) -> tuple[str, ...]:
    if body.count(b'":') > 1:
        raise WireError("body", "unknown member")
    words: tuple[str, ...] = original(body, reports)
    return words


@in_place_of(transport, "decode_verdicts")
def takes_any_number_of_verdicts(_: Original, body: bytes, reports: int) -> tuple[str, ...]:
    for number in range(3):
        try:
            return (*decode_verdicts(body, number), *[Verdict.COUNTED] * reports)[:reports]
        except WireError:
            continue
    return decode_verdicts(body, reports)


def _refusing(is_refused: Callable[[Reply], bool]) -> Plant:
    """Return a plant that drops the reports after a reply."""

    @in_place_of(HttpTransport, "_read")
    def plant(original: Original, http: HttpTransport, reply: Reply, reports: int) -> Outcome:
        outcome: Outcome = original(http, reply, reports)
        is_kept = isinstance(outcome, Later)
        return Rejected(f"{reply.status}") if is_kept and is_refused(reply) else outcome

    return plant


@in_place_of(HttpTransport, "_read")
def retries_what_is_rejected(original: Original, *arguments: Any) -> Outcome:
    outcome: Outcome = original(*arguments)
    return Later(outcome.why) if isinstance(outcome, Rejected) else outcome


def _exact_delay(header: str | None, _: float) -> float:
    return float(header) if header and header.isdecimal() else 0.0


@in_place_of(RowBackoff, "waiting")
def waits_as_one_device(
    original: Original, rows: RowBackoff, reports: list[QueuedReport], now: float
) -> dict[int, float]:
    original(rows, reports, now)
    due = max(rows._due.values(), default=None)
    return {} if due is None else {report.number: due for report in reports}


@in_place_of(Uploader, "_tokened")
def waits_for_a_token(original: Original, sender: Uploader, outbox: Any, reports: Any) -> Any:
    class Patient:
        """An outbox that keeps what has no token."""

        def settle(self, _: object, dropped: Mapping[int, object]) -> None:
            outbox.reschedule({number: sender.now() + 3600 for number in dropped})

    return original(sender, Patient(), reports)


# -- age, closed rows ------------------------------------------------------------------------------


@in_place_of(SqliteState, "expire")
def knows_no_age_limit(*_: Any) -> None:
    """Drop nothing."""


@in_place_of(LossReports, "_time")
def sends_losses_at_once(_: Original, __: LossReports, ___: str, now: float, ____: float) -> float:
    return now


@in_place_of(ClosedRows, "_last_period")
def closes_the_whole_series(_: Original, rows: ClosedRows, report: Report) -> int:
    return rows.series[report.fingerprint].periods - 1


@in_place_of(ClosedRows, "holds")
def closes_every_row(_: Original, rows: ClosedRows, __: QueuedReport) -> bool:
    return bool(rows._closed)


WRONG_CLIENTS: tuple[tuple[str, Plant], ...] = (
    ("draws the message at each try", draws_at_each_try),
    ("sends the whole body again after a partial `full`", sends_the_whole_body_again),
    ("takes `full` for the end", sends_nothing_again),
    ("takes `duplicate` for a loss to be retried", _misreading(
        lambda word: Verdict.FULL if word is Verdict.DUPLICATE else word)),
    ("drops at an unknown verdict", _misreading(
        lambda word: Verdict.MALFORMED if word == UNKNOWN_VERDICT else word)),
    ("drops at `early`", _misreading(
        lambda word: Verdict.STALE if word is Verdict.EARLY else word)),
    ("drops at `unknown_collection`", _misreading(
        lambda word: Verdict.STALE if word is Verdict.UNKNOWN_COLLECTION else word)),
    ("retries at `stale`", _misreading(
        lambda word: Verdict.FULL if word is Verdict.STALE else word)),
    ("an unknown verdict spoils the reply", refuses_unknown_verdicts),
    ("an unknown member spoils the reply", refuses_unknown_members),
    ("takes a wrong number of verdicts", takes_any_number_of_verdicts),
    ("drops at 415", _refusing(lambda reply: reply.status == 415)),
    ("drops at `unknown-version`", constant(transport, "is_unknown_version", lambda _: False)),
    ("drops at any status of 400 to 499", _refusing(lambda reply: 400 <= reply.status < 500)),
    ("drops at a 400 without a problem document", _refusing(lambda reply: reply.status == 400)),
    ("drops at a redirect", _refusing(lambda reply: reply.status == 302)),
    ("drops at a 200 that holds no verdicts", _refusing(lambda reply: reply.status == 200)),
    ("retries what is rejected", retries_what_is_rejected),
    ("backs off by seconds, whoever has read the body", constant(
        backoff, "spaced_delay", backoff.delay)),
    ("backs off by hours, though nobody has read the body", constant(
        backoff, "delay", backoff.spaced_delay)),
    ("backs off without an end", constant(backoff, "LONGEST", math.inf)),
    ("takes Retry-After to the second", constant(backoff, "retry_after", _exact_delay)),
    ("takes no notice of Retry-After", constant(backoff, "retry_after", lambda *_: 0.0)),
    ("all rows wait with one", waits_as_one_device),
    ("a row does not wait", constant(RowBackoff, "waiting", lambda *_: {})),
    ("waits for a token", waits_for_a_token),
    ("knows no age limit", knows_no_age_limit),
    ("sends losses at once", sends_losses_at_once),
    ("goes on after `closed`", constant(ClosedRows, "add", do_nothing)),
    ("what waits of a closed row is sent", constant(ClosedRows, "holds", lambda *_: False)),
    ("draws for a closed row", constant(SqliteState, "close_row", do_nothing)),
    ("closes the series, not the row", closes_the_whole_series),
    ("closes every row of the device", closes_every_row),
)  # fmt: skip
