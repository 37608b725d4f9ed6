"""The summary of a replay, as a document for programs, and its tables for people.

Figures are those of the reader, with the true ones of the same reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from veilcount_analysis.text import number_format
from veilcount_analysis.text.result_columns import spelled
from veilcount_reader.results import Estimate
from veilcount_shared.shuffling.crowd import HEADER_BYTES
from veilcount_shared.shuffling.times import batch_rules

from .campaign import SCREEN, SCREENS, Question
from .population import TrueAnswers
from .relayed_question import PartyLogs
from .run import DemoResult
from .shuffled_question import DemoShuffler

Document = Mapping[str, Any]
Row = dict[str, Any]
Table = tuple[tuple[str, ...], list[tuple[object, ...]]]

TOP = 4  # values of a long list
SHOWN = 6  # bytes of what is random to whoever sees it

FIGURES = ("question", "value", "truth", "estimate", "interval", "n")
RELEASED = ("value", "truth", "released", "interval")
COSTS = ("question", "protects", "event", "day", "user", "by", "spent", "worst", "reports")
PARTIES = ("party", "entries", "from", "one of them")
PRICES = (
    "Epsilon: promised for an event, a UTC day and a user; and spent, where one pseudonym is one"
    " person: mean and maximum of a user."
)


def summary(result: DemoResult, *, seed: int, level: float) -> dict[str, Any]:
    """Summarize a replay."""
    run, logs = result.run, result.run.deployment.logs
    listed = {row["name"]: row for row in result.reader.collections()}
    return {
        "app": next(iter(run.campaign.collections.values())).app,
        "begins": str(run.campaign.start),
        "today": str(run.campaign.today),
        "until": str(run.campaign.until),
        "seed": seed,
        "level": level,
        "participation": {
            "devices": len(run.users),
            "clients": len(run.real),
            "consented": int(run.users.consents.sum()),
            "sent_by_clients": _numbers(result.real),
            "sent_by_simulated": _numbers(result.simulated),
            "sent_by_beta": len(logs.aggregator),
        },
        "rows": [row for name in result.names for row in _figures(result, name, level)],
        "release": result.released,
        "released": list(_released(result)),
        "budgets": [_budget(result, listed[name]) for name in result.names],
        "relayed": _relayed(logs) if logs.aggregator else None,
        "shuffled": _shuffled(run.deployment.shuffler),
    }


def _numbers(verdicts: Counter[Any]) -> dict[str, int]:
    return {str(verdict): number for verdict, number in verdicts.items() if number}


# -- figures ---------------------------------------------------------------------------------------


def _figures(result: DemoResult, name: str, level: float) -> Iterator[Row]:
    """Yield the figures of a local question, of each home screen where there are two."""
    if name == Question.WAY_THERE_CENTRAL:
        return
    answers = result.truth(name)
    for segment, screen in enumerate(SCREENS if name == Question.FIRST_TAP else ("",)):
        only = {"segment": f"{SCREEN}:{screen}"} if screen else {}
        estimate = result.reader.estimate(name, level=level, **only)
        truth = _shares(result, name, answers.where(answers.segments == segment))
        for value, figure, low, high in islice(estimate_rows(estimate), TOP):
            yield {
                "collection": name,
                "segment": screen,
                "value": value,
                "n": estimate.n,
                "truth": truth[value],
                "figure": figure,
                "low": low,
                "high": high,
            }


def estimate_rows(estimate: Estimate) -> Iterator[tuple[str, float, float, float]]:
    """Yield each figure of an estimate with its interval."""
    columns = (column.tolist() for column in (estimate.figure, estimate.low, estimate.high))
    for value, *figures in zip(estimate.of, *columns, strict=True):
        yield spelled(value) or "mean", *figures


def _shares(result: DemoResult, name: str, answers: TrueAnswers) -> dict[str, float]:
    """Return the true share of each value, and the mean of a number."""
    labels = getattr(result.snapshot.named(name)[0].collection.domain, "labels", ())
    counts = np.bincount(answers.values, minlength=len(labels)).tolist()
    shares = {spelled(label) or "": counts[at] / len(answers) for at, label in enumerate(labels)}
    return shares or {"mean": float(answers.values.mean())}


def _released(result: DemoResult) -> Iterator[Row]:
    """Yield the figures of the central release, with the truth of the same month."""
    answers, release = result.truth(Question.WAY_THERE_CENTRAL), result.released
    month = answers.where(answers.periods == result.run.released_period)
    truth = _shares(result, Question.WAY_THERE_CENTRAL, month)
    for row in release["figures"]:
        value = spelled(row["value"]) or ""
        ends = {name: row[name] / len(month) for name in ("figure", "low", "high")}
        yield {"value": value, "truth": truth[value], **ends}


def _budget(result: DemoResult, listed: Document) -> Row:
    """Return what a question costs a person: promised, and spent where reports can be linked."""
    (series,) = result.reader.budget(listed["name"])["series"]
    figures, spent = series["budget"]["figures"], series["budget"]["spent"] or {}
    return {
        "collection": listed["name"],
        "question": series["question"],
        "reports": listed["reports"],
        **{name: figures[name] for name in ("unit", "event", "day", "user", "adjacency")},
        "spent": spent.get("mean"),
        "worst": spent.get("worst"),
    }


# -- the relayed question --------------------------------------------------------------------------


def _relayed(logs: PartyLogs) -> dict[str, Any]:
    """Return what each party saw: how often, of whom, and one entry; and what logs share."""
    signed, exchange, report = logs.issuer[0], logs.relay[0], logs.aggregator[0]
    entries = (
        ("issuer", logs.issuer, signed.account, f"blinded {_start(signed.blinded)}"),
        (
            "relay",
            logs.relay,
            exchange.address,
            f"{len(exchange.body):,} bytes {_start(exchange.body)}",
        ),
        (
            *("aggregator", logs.aggregator, "the relay"),
            f"pseudonym {_start(report.pseudonym)}, token {_start(report.token)}",
        ),
    )
    return {
        "parties": [
            {"party": party, "entries": len(log), "from": sender, "entry": entry}
            for party, log, sender, entry in entries
        ],
        "lengths": len({(len(exchange.body), len(exchange.reply)) for exchange in logs.relay}),
        "in_common": logs.in_common(),
        "compared": 2 * len(logs.aggregator),
    }


def _shuffled(shuffler: DemoShuffler) -> dict[str, Any] | None:
    """Return what the shuffler and the aggregator saw; nothing if its batch did not leave."""
    logs, rules = shuffler.logs, batch_rules(shuffler.collection)
    if not logs.aggregator:
        return None
    held, first = logs.shuffler[0], logs.aggregator[0]
    size = f"{len(first)} bytes"
    return {
        "parties": [
            {
                "party": "shuffler",
                "entries": len(logs.shuffler),
                "from": held.address,
                "entry": f"{held.instant:%H:%M} UTC, {size} {_start(held.sealed[HEADER_BYTES:])}",
            },
            {
                "party": "aggregator",
                "entries": len(logs.aggregator),
                "from": "the shuffler",
                "entry": f"{size} {_start(first[HEADER_BYTES:])}, opened: a random answer",
            },
        ],
        "covers": rules.covers,
        "epsilon": float(rules.epsilon or 0),
        "delta": float(rules.delta or 0),
        "together": float(shuffler.collection.unit_epsilon),
        "in_place": logs.in_place(),
    }


def _start(raw: bytes) -> str:
    return raw[:SHOWN].hex() + "..."


# -- for people ------------------------------------------------------------------------------------


def sections(document: Document) -> Iterator[tuple[list[str], Table]]:
    """Yield the sections of a summary: lines, and the table below them."""
    yield (
        [*_participation(document), "", *_questions(document), ""],
        (FIGURES, [_figure_cells(row) for row in document["rows"]]),
    )
    yield (
        ["", *_notes(document), ""],
        (
            RELEASED,
            [
                (
                    row["value"],
                    number_format.share(row["truth"]),
                    *_estimate_cells(row, shares=True),
                )
                for row in document["released"]
            ],
        ),
    )
    yield ["", PRICES, ""], (COSTS, [_cost_cells(row) for row in document["budgets"]])
    if document["relayed"]:
        parties = [tuple(party.values()) for party in document["relayed"]["parties"]]
        yield ["", *_logs(document["relayed"]), ""], (PARTIES, parties)
    if document["shuffled"]:
        parties = [tuple(party.values()) for party in document["shuffled"]["parties"]]
        yield ["", *_batch_logs(document["shuffled"]), ""], (PARTIES, parties)


def _participation(document: Document) -> Iterator[str]:
    part = document["participation"]
    yield (
        f"{document['app']}, a fictional hiking app, {document['begins']} to {document['today']}"
        f" (until {document['until']}): {part['devices']:,} devices,"
        f" {part['consented']:,} consented."
    )
    yield (
        f"{part['clients']:,} are real clients, over HTTP: {_verdicts(part['sent_by_clients'])}."
        f" The others are simulated: {_verdicts(part['sent_by_simulated'])}, through the same"
        f" intake (--seed {document['seed']}). {part['sent_by_beta']:,} reports of a beta came over"
        " a relay."
    )


def _verdicts(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {verdict}" for verdict, number in verdicts.items()) or "none"


def _questions(document: Document) -> Iterator[str]:
    return (f"{row['collection']}: {row['question']}" for row in document["budgets"])


def _figure_cells(row: Document) -> tuple[object, ...]:
    shares, segment = row["value"] != "mean", f" ({row['segment']})" if row["segment"] else ""
    truth = number_format.figure(row["truth"], of_shares=shares)
    estimate = _estimate_cells(row, shares=shares)
    return (f"{row['collection']}{segment}", row["value"], truth, *estimate, f"{row['n']:,}")


def _estimate_cells(row: Document, *, shares: bool) -> tuple[str, str]:
    figure = number_format.figure(row["figure"], of_shares=shares)
    return figure, number_format.interval(row["low"], row["high"], of_shares=shares)


def _notes(document: Document) -> Iterator[str]:
    rows, release = document["rows"], document["release"]
    covered = sum(row["low"] <= row["truth"] <= row["high"] for row in rows)
    yield (
        f"The truth is in {covered} of {len(rows)} intervals (level {document['level']:.4g}, of"
        " each value on its own)."
    )
    yield ""
    yield (
        f"Sent to a trusted curator, and released once for epsilon {release['epsilon']}"
        f" ({number_format.adjacency(release['adjacency'])}): {Question.WAY_THERE_CENTRAL},"
        f" {release['from']} to {release['to']}, level {release['level']:.4g}"
    )


def _cost_cells(row: Document) -> tuple[object, ...]:
    epsilons = (row["event"], row["day"], row["user"], number_format.adjacency(row["adjacency"]))
    spent = f"{float(row['spent']):.3g}" if row["spent"] else "not joinable"
    reports = f"{row['reports']:,}"
    return (row["collection"], f"one {row['unit']}", *epsilons, spent, row["worst"] or "", reports)


def _logs(relayed: Document) -> Iterator[str]:
    alike = "all alike in length" if relayed["lengths"] == 1 else f"{relayed['lengths']} lengths"
    yield (
        f"{Question.SHARED_POSITION} travels over a relay, each report with a token of an issuer."
        " What the three parties see, were each to write down all of it:"
    )
    yield (
        f"of {relayed['compared']:,} pseudonyms and tokens that the aggregator has,"
        f" {relayed['in_common']:,} are anywhere in a log of the others. Requests and replies at"
        f" the relay: {alike}. (Here all addresses are this machine's, and all logs in one hand.)"
    )


def _batch_logs(shuffled: Document) -> Iterator[str]:
    yield (
        f"{Question.GUIDE} travels by a shuffler, which held the sealed reports of a week, added"
        f" {shuffled['covers']} cover reports of its own and handed all over once, in random order:"
    )
    yield (
        f"{shuffled['in_place']} of them stand where they came (by chance 1). Of an answer, epsilon"
        f" {shuffled['together']:g} can be learnt by both together, and {shuffled['epsilon']:g}"
        f" (delta {shuffled['delta']:g}) by the server alone, if the shuffler keeps its word."
    )
