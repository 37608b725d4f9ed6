"""Traces of what does not get through, and of closed rows."""

from __future__ import annotations

from dataclasses import replace

from veilcount_shared.report import Losses

from ...client.device_fixtures import DAY, HOUR
from ..trace_story import NO_REPLY, NOT_CONNECTED, Story, day, http, problem, verdicts
from .stories import EVENT, Stories

STORIES = Stories()
trace = STORIES.trace


# -- what does not get through ---------------------------------------------------------------------


@trace("lost reply", it={})
def lost_reply(story: Story) -> None:
    """The same bytes again and again, ever rarer, once somebody may have read them."""
    story.at(0, 9).record()
    waiting = story.store()
    for attempts, share in (1, 0.5), (2, 1), (3, 0.25), (4, 0):
        story.sent(waiting, reply=NO_REPLY)
        (waiting,) = story.back_off(waiting, share=share, seen=attempts)
    story.sent(waiting, reply=verdicts("duplicate")).end(20)


@trace("not connected", it={})
def not_connected(story: Story) -> None:
    """What nobody can have read is tried again within 5 s, doubled each time, an hour at most."""
    story.at(0, 9).record()
    waiting = story.store()
    for attempts in range(12):
        story.sent(waiting, reply=NOT_CONNECTED)
        most = min(5 << attempts, HOUR)
        (waiting,) = story.back_off(waiting, share=1, most=most)
    story.sent(waiting).end(2)


@trace("unknown verdict", it={})
def unknown_verdict(story: Story) -> None:
    """A verdict that is not in the table keeps its report; other members are ignored."""
    story.at(0, 9).record()
    waiting = story.store()
    story.sent(waiting, reply=verdicts("postponed", counted=["it"]))
    (waiting,) = story.back_off(waiting, share=0.5, seen=1)
    story.sent(waiting, reply=verdicts("duplicate", verdict="full")).end(20)


@trace("kept verdicts", it={})
def kept_verdicts(story: Story) -> None:
    """`full`, `unknown_collection` and `early` keep a report until its age limit."""
    story.at(0, 9).record()
    waiting = story.store()
    for attempts, verdict in enumerate(("full", "unknown_collection", "early"), 1):
        story.sent(waiting, reply=verdicts(verdict))
        (waiting,) = story.back_off(waiting, share=0.5, seen=attempts)
    story.sent(waiting).end(20)


@trace("partial full", it=EVENT | {"per_day": 3}, other={})
def partial_full(story: Story) -> None:
    """A row that waits waits as a whole; of its body only what is kept is sent again."""
    story.at(0, 9).record(True)
    one = story.store(True, share=0.5)
    story.record(False)
    two = story.store(False, answer=1, share=0.500556)
    story.record(True)
    three = story.store(True, answer=2, share=0.500833)
    story.record(True, "other")
    other = story.store(True, "other", share=0.501111)
    story.sent(one, reply=NOT_CONNECTED)
    (first_again,) = story.back_off(one, share=1, most=5)
    story.sent(other)
    both = [replace(first_again, report=waiting.report) for waiting in (one, two, three)]
    story.sent(*both, reply=verdicts("counted", "full", "postponed"))
    kept = story.back_off(*both[1:], share=0.25, seen=1)
    story.sent(*kept, reply=verdicts("counted", "full"))
    (again,) = story.back_off(kept[1], share=0.5, seen=2)
    story.sent(again).end(5)


@trace("unknown version", it={})
def unknown_version(story: Story) -> None:
    """415 and `unknown-version` keep the report: an app may be updated before its server."""
    story.at(0, 9).record()
    waiting = story.store()
    replies = problem(415, "wrong-type"), problem(400, "unknown-version")
    for attempts, reply in enumerate(replies, 1):
        story.sent(waiting, reply=reply)
        (waiting,) = story.back_off(waiting, share=0.5, seen=attempts)
    story.sent(waiting).end(20)


@trace("rejected", it={})
def rejected(story: Story) -> None:
    """400, 413 and 422 with a problem document drop the body's reports, and nothing else."""
    names = {400: "bad-field", 413: "too-large", 422: "bad-field"}
    for period, (status, name) in enumerate(names.items()):
        story.at(period, 9).record()
        story.sent(story.store(period=period), reply=problem(status, name))
    story.at(3, 9).record()
    story.sent(story.store(period=3)).end(20)


@trace("other statuses", it={})
def other_statuses(story: Story) -> None:
    """Any other status, and a reply that is not valid, keep the report."""
    replies = (
        http(400, "<html>"),
        http(200, "<html>"),
        verdicts("counted", "counted"),
        http(200, {"verdicts": [1]}),
        http(302, Location="https://elsewhere.example/"),
        problem(403, "forbidden"),
        problem(404, "not-found"),
    )
    for period, reply in enumerate(replies):
        story.at(period, 9).record()
        waiting = story.store(period=period)
        story.sent(waiting, reply=reply)
        story.sent(*story.back_off(waiting, share=0.5, seen=1))
    story.end(8)


@trace("retry after", it={})
def retry_after(story: Story) -> None:
    """What a server asks to wait is rounded up to 0, 60, 300, 900 or 3,600 s, and comes on top."""
    replies = (
        (http(429, **{"Retry-After": "301"}), 900),
        (http(503, **{"Retry-After": "60"}), 60),
        (http(503, **{"Retry-After": "86400"}), HOUR),
        (http(503, **{"Retry-After": "Tue, 01 Dec 2026 00:00:00 GMT"}), 0),
        (http(500), 0),
    )
    for period, (reply, least) in enumerate(replies):
        story.at(period, 9).record()
        waiting = story.store(period=period)
        story.sent(waiting, reply=reply)
        story.sent(*story.back_off(waiting, share=0.5, seen=1, least=least))
    story.end(8)


@trace("age limit", it={"late": 1})
def age_limit(story: Story) -> None:
    """What is too old is dropped, not sent; only its number is reported, days later, alone."""
    story.at(0, 9).record()
    waiting = story.store()
    for attempts, share in (1, 0.5), (2, 1):
        story.sent(waiting, reply=http(503))
        (waiting,) = story.back_off(waiting, share=share, seen=attempts)
    losses = Losses(next(iter(story.collections.values())).fingerprint, 1, 0, 0)
    story.delays.append(500_000)
    expired = day(2)
    story.sent_losses(losses, expired + DAY, expired + 2 * DAY + HOUR, verdicts())
    story.end(12)


@trace("dropped verdicts", it={})
def dropped_verdicts(story: Story) -> None:
    """`over_budget`, `stale` and `malformed` drop a report; the next period is answered."""
    for period, verdict in enumerate(("over_budget", "stale", "malformed")):
        story.at(period, 9).record()
        story.sent(story.store(period=period), reply=verdicts(verdict))
    story.end(5)


# -- closed rows -----------------------------------------------------------------------------------


@trace("closed", it=EVENT | {"per_day": 2}, other=EVENT)
def closed(story: Story) -> None:
    """Of a closed row nothing is drawn or sent any more, and no other row is touched."""
    story.at(0, 9).record(True)
    one = story.store(True, share=0.1)
    story.record(False)
    story.store(False, answer=1, share=0.9)
    story.record(True, "other")
    other = story.store(True, "other", share=0.8)
    story.sent(one, reply=verdicts("closed")).sent(other)
    story.at(1, 9).stop()
    story.start()
    story.record(True)
    story.record(True, "other")
    story.sent(story.store(True, "other", period=1)).end(5)


@trace("closed period", it={"unit": "event", "per_day": 2})
def closed_period(story: Story) -> None:
    """With linkage `period` a closed row is one period's; `duplicate` ends a report as well."""
    story.at(0, 9).record()
    story.sent(story.store(), reply=verdicts("closed"))
    story.at(0, 12).record()
    story.at(1, 9).record()
    story.sent(story.store(period=1), reply=verdicts("duplicate"))
    story.at(1, 12).record()
    story.sent(story.store(period=1, answer=1)).end(5)
