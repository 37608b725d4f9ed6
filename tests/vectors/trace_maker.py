"""Write tests/vectors/trace.json: `python -m tests.vectors.trace_maker`.

One function a trace: what happens to a device, event by event, and what it then sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from veilcount_shared import schedule
from veilcount_shared.report import Losses

from ..client.device_fixtures import DAY, HOUR, MINUTE
from .trace_story import (
    NO_REPLY,
    NOT_CONNECTED,
    TRUE_VALUE,
    Story,
    day,
    http,
    middle_of_day,
    problem,
    seed_with,
    verdicts,
)

FILE = Path(__file__).parent / "trace.json"
ABOUT = """
Events in, bodies and times out: the life of one device, for each row of the table of states. `at`,
`earliest`, `latest` and `to` are readings of the device's clock in seconds after 2026-12-01 UTC.
`secrets` are the person's secret and those that follow after `forget` or `copied`, `root` is the
other secret. `words` are what random messages take, in the order in which answers are drawn (of
linkage none, 16 words follow, the highest byte of each is one of the pseudonym's). `delays` are the
drawn delays in millionths of the longest: one for each report that is stored, each row that did not
get through, each report that is due again after it was overdue, and each loss that is seen, in this
order. Whoever draws delays otherwise compares with `earliest` and `latest`, which are the same for
every draw. An event `sent` is what the device MUST send, `at` to a second, where it is there, and
the reply that it receives; `failure` is a request of which nobody can have read the body (`not
connected`), or somebody may (`no reply`). The order of the reports of a body is free; verdicts are
in the order that is written here. `instant` states a drawn instant, `start` may bring another file
of definitions, and `record` may have `value`s that are never sent. Nothing is sent but what is
listed, until `end`.
"""
EVENT = {"unit": "event", "linkage": "collection"}
LAST = {"takes": "last", "held": "device"}
HIDDEN = {"presence": "hidden"}
STORIES: list[Callable[[], Story]] = []


def trace(
    name: str,
    *,
    fits: Callable[[Story], bool] | None = None,
    begun: bool = True,
    **tables: Mapping[str, object],
) -> Callable[[Callable[[Story], object]], None]:
    """Add a story, its reason in its docstring; `fits`: its secret is the first that does."""

    def build(why: str, events: Callable[[Story], object], seed: str = "") -> Story:
        story = Story(name, why, tables, seed=seed)
        if begun:
            story.begin(0, 8)
        events(story)
        return story

    def add(events: Callable[[Story], object]) -> None:
        words = " ".join((events.__doc__ or "").split()).removesuffix(".")
        build_with = partial(build, words[0].lower() + words[1:], events)
        STORIES.append(partial(seed_with, build_with, fits) if fits else build_with)

    return add


# -- what a period reports -------------------------------------------------------------------------


@trace("first", it={})
def first(story: Story) -> None:
    """The first value of a period is its report, and no later one."""
    story.at(0, 9).record(True)
    waiting = story.store(True, share=0.5)
    story.at(0, 9, 600).record(False)
    story.sent(waiting)
    story.at(0, 20).record(False)
    story.at(1, 9).record(False)
    story.sent(story.store(False, period=1, share=0))
    story.end(3)


@trace("last", fits=middle_of_day(), it=LAST)
def last(story: Story) -> None:
    """The last value, on the device through a restart."""
    instant = story.instant(period=1)
    story.at(instant - 2 * HOUR).record(True)
    story.at(instant - 1.5 * HOUR).stop()
    story.at(instant - HOUR).start()
    story.at(instant - 0.5 * HOUR).record(False)
    story.frozen(period=1)
    waiting = story.store(False, period=1)
    story.at(instant + MINUTE).record(True)
    story.sent(waiting).end(2)


@trace("any", fits=middle_of_day(periods=(1, 2)), it={"takes": "any"})
def any_value(story: Story) -> None:
    """True once is true; the end of the process freezes what only memory holds."""
    instant = story.instant(period=1)
    for hours, value in (3, False), (2, True), (1, False):
        story.at(instant - hours * HOUR).record(value)
    story.frozen(period=1)
    story.sent(story.store(True, period=1, share=1))
    instant = story.instant(period=2)
    story.at(instant - 2 * HOUR).record(False)
    story.at(instant - HOUR).stop()
    waiting = story.store(False, period=2)
    story.at(instant + 2 * HOUR).start()
    story.record(True)
    story.sent(story.spread(waiting, 0.75)).end(3)


@trace(
    "sum",
    fits=middle_of_day(),
    it={"range": [0, 10], "measure": "mean", "takes": "sum", "held": "device"},
)
def total(story: Story) -> None:
    """Records are added up, each once, through a restart."""
    instant = story.instant(period=1)
    story.at(instant - 2 * HOUR).record(2)
    story.at(instant - HOUR).stop()
    story.start()
    story.record(3.5)
    story.frozen(period=1)
    story.sent(story.store(5.5, period=1)).end(2)


@trace("returning", it={"takes": "returning"})
def returning(story: Story) -> None:
    """Whether the period before was one of a visit, too."""
    for period, returned in (1, False), (2, True), (4, False):
        story.at(period, 9).record()
        waiting = story.store(returned, period=period)
        story.at(period, 9, 60).record()
        story.sent(waiting)
    story.end(6)


@trace("two answers", fits=lambda story: story.slot("it", 0, 0) == 1, it=EVENT | {"per_day": 2})
def two_answers(story: Story) -> None:
    """Two answers a day take the day's two slots in the drawn order; a third has none."""
    story.at(0, 9).record(True)
    one = story.store(True, share=0.1)
    story.at(0, 9, 60).record(False)
    two = story.store(False, answer=1, share=0.9)
    story.at(0, 9, 120).record(True)
    story.sent(one).sent(two)
    story.at(0, 23).record(True)
    story.at(1, 9).record(True)
    story.sent(story.store(True, period=1)).end(3)


@trace("unlinked", it={"linkage": "none"})
def unlinked(story: Story) -> None:
    """Without linkage each report has a pseudonym, a slot 0 and a back-off of its own."""
    for period in 0, 1:
        story.at(period, 9).record()
        story.sent(story.store(True, period=period, share=0.5))
    story.end(2)


@trace(
    "trend", fits=lambda story: story.trend()[0].level == 1, it={"measure": "trend", "changes": 1}
)
def trend(story: Story) -> None:
    """A state is reported at the end of each interval, recorded or not; a sign is used once."""
    story.stop()
    state, collection = story.trend()
    mechanism = schedule.trend_mechanism(collection)
    for interval, value in enumerate((0, 1, 1, 0, 0)):
        period = 2 * interval + 1
        story.at(story.instant(period=period) - HOUR).start()
        if interval in {1, 3}:
            story.record(bool(value))
        story.frozen(period=period)
        message, state = mechanism.report(state, value, story.source)
        story.sent(story.store(period=period, message=message, least=MINUTE, most=2 * MINUTE))
        story.at(story.now + 1).stop()
    story.end(10)


@trace("true value", it={"model": "central", "budget": 1})
def true_value(story: Story) -> None:
    """A true value leaves within minutes, and with the end of its process at the latest."""
    story.at(0, 9).record(True)
    story.sent(story.store(True, most=TRUE_VALUE, share=0.5))
    story.at(1, 9).record(False)
    waiting = story.store(False, period=1, most=TRUE_VALUE, share=0.5)
    story.at(1, 9, 10).stop()
    end = story.now
    story.sent(replace(waiting, earliest=end, latest=end, at=end)).end(2)


@trace("tokens", it={"linkage": "token", "tokens": "00" * 32, "answers": 29})
def tokens(story: Story) -> None:
    """A report leaves with the token of its slot or never, however late the token comes."""
    story.at(0, 8, 60).tokens({1: bytes(range(256))})
    story.at(0, 9).record()  # its period had begun before the consent
    story.at(1, 9).record()
    waiting = story.store(period=1)
    story.sent(replace(waiting, report=replace(waiting.report, token=bytes(range(256)))))
    story.at(2, 9).record()
    story.store(period=2)
    story.at(2, 11).tokens({2: bytes(256)})
    story.end(4)


# -- hidden presence -------------------------------------------------------------------------------


@trace(
    "hidden presence", fits=middle_of_day(periods=(1, 2, 3)), begun=False, it={"presence": "hidden"}
)
def hidden(story: Story) -> None:
    """A record and an absence leave alike: in the minute after that of the absence's draw."""
    story.at(0, 0).start()
    story.consent()
    _absent(story, 0)
    story.at(story.now + 1).stop()
    instant = story.instant(period=1)
    story.at(instant - HOUR).start()
    story.record(True)
    story.at(instant).sent(story.store(True, period=1, share=0.5, least=MINUTE, most=2 * MINUTE))
    story.at(story.now + 1).stop()
    story.at(story.instant(period=2) - HOUR).start()
    _absent(story, 2)
    story.at(story.now + HOUR).record(True)
    story.at(story.now + 1).stop()
    story.at(story.instant(period=3))
    waiting = story.store(period=3, absent=True, share=0.5, least=MINUTE, most=2 * MINUTE)
    story.at(story.now + 2 * HOUR).start()
    story.sent(story.spread(waiting, 0.25)).end(4)


def _absent(story: Story, period: int, share: float = 0.5) -> None:
    story.frozen(period=period)
    story.sent(story.store(period=period, absent=True, share=share, least=MINUTE, most=2 * MINUTE))


@trace(
    "hidden presence, consent",
    fits=middle_of_day(periods=(2, 3)),
    begun=False,
    it={"presence": "hidden"},
)
def hidden_return(story: Story) -> None:
    """No period before the consent is answered, nor that of a consent that is given again."""
    story.at(2, 0).start()
    story.consent()
    story.at(2, 2).consent(granted=False)
    story.at(2, 3).consent()
    story.at(2, 4).record()
    story.at(2, 20).stop()
    story.at(story.instant(period=3) - HOUR).start()
    _absent(story, 3)
    story.end(4)


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


# -- consent ---------------------------------------------------------------------------------------


@trace("withdrawal", begun=False, it={})
def withdrawn(story: Story) -> None:
    """A no wipes what waits; after another yes no slot is used again."""
    story.at(0, 7).start()
    story.record()
    story.at(0, 8).consent()
    story.at(0, 9).record()
    story.store(share=0.5)
    story.at(0, 9, 60).consent(granted=False)
    story.record()
    story.at(0, 12).consent()
    story.record()
    story.at(1, 9).record()
    story.sent(story.store(period=1)).end(3)


@trace("withdrawal of a running value", fits=middle_of_day(), it=LAST | {"takes": "any"})
def withdrawn_value(story: Story) -> None:
    """A no wipes the running value: after another yes only later records count."""
    instant = story.instant(period=1)
    story.at(instant - 3 * HOUR).record(True)
    story.at(instant - 2 * HOUR).consent(granted=False)
    story.at(instant - 1 * HOUR).consent()
    story.at(instant - 0.5 * HOUR).record(False)
    story.frozen(period=1)
    story.sent(story.store(False, period=1)).end(3)


@trace("forget", it=EVENT | {"per_day": 2})
def forgotten(story: Story) -> None:
    """Nothing is sent by `forget`, nor under an old pseudonym after it; what is spent is spent."""
    story.at(0, 9).record(True)
    sent = story.store(True, share=0.1)
    story.record(False)
    story.store(False, answer=1, share=0.9)
    story.sent(sent)
    story.at(0, 9, 1800).forget()
    story.record(True)
    story.at(0, 10).consent()
    story.at(0, 11).record(True)
    story.store(True)  # the day is paid for: drawn, refused and never sent
    story.at(1, 9).record(True)
    story.sent(story.store(True, period=1)).end(3)


@trace("answering periods", it={"answers": 15})
def answering_periods(story: Story) -> None:
    """The drawn periods are answered, of the root: the same before and after `forget`."""
    (collection,) = story.collections.values()
    drawn = schedule.draw_answering_periods(story.root, collection)
    for period in range(12):
        if period == 6:
            story.at(period, 8).forget()
            story.at(period, 8, 60).consent()
        story.at(period, 9).record()
        if period in drawn:
            story.sent(story.store(period=period))
    story.end(14)


@trace("copied state", it=EVENT, other={})
def copied(story: Story) -> None:
    """A copied state sends nothing that waited, and answers no period that had begun."""
    story.at(0, 9).record()
    story.sent(story.store())
    story.at(0, 11).record(True, "other")
    story.store(True, "other", share=0.9)
    story.at(0, 11, 60).copied()
    story.at(0, 12).start()
    story.record()
    story.consent()
    story.record()
    story.record(True, "other")
    story.at(1, 9).record()
    story.sent(story.store(period=1)).end(3)


@trace("definition replaced", fits=middle_of_day("held"), it={}, held=LAST)
def redefined(story: Story) -> None:
    """Another form of a definition: what waits is sent, a running value is wiped; no new
    consent.
    """
    changed = {name: {**keys, "question": "Is it?"} for name, keys in (("it", {}), ("held", LAST))}
    instant = story.instant("held", 1)
    story.at(instant - 2 * HOUR).record(True, "held")
    story.record(True)
    waiting = story.store(True, period=1, share=0.5)
    story.at(instant - 1.8 * HOUR).stop()
    story.start(changed)
    story.record(True, "held")
    story.sent(waiting)
    story.at(2, 9).record(True)
    story.at(3, 9).consent()
    story.record(True)
    story.sent(story.store(True, period=3)).end(4)


# -- clocks and restarts ---------------------------------------------------------------------------


@trace("clock set back", it={})
def clock_back(story: Story) -> None:
    """After an answer for a period no earlier one is answered, whatever the clock says."""
    story.at(3, 9).record(True)
    story.sent(story.store(True, period=3))
    story.at(3, 10).clock(1, 9)
    story.record(False)
    story.at(3, 20).record(False)
    story.at(4, 9).record(False)
    story.sent(story.store(False, period=4)).end(5)


@trace("clock ahead", it={})
def clock_ahead(story: Story) -> None:
    """A clock ahead answers early; once it is right, what it put off is due within the hour."""
    story.at(0, 8, 600).clock(20, 9)
    story.record(True)
    waiting = story.store(True, period=20)
    story.sent(waiting, reply=verdicts("early"))
    (waiting,) = story.back_off(waiting, share=0.75, seen=1)
    story.at(20, 10).clock(0, 12)
    story.record(False)
    waiting = story.spread(waiting, 0.5)
    story.sent(waiting, reply=verdicts("early"))
    (waiting,) = story.back_off(waiting, share=0.25, seen=2)
    story.sent(waiting)
    story.at(19, 9).record(False)
    story.at(21, 9).record(False)
    story.sent(story.store(False, period=21)).end(23)


@trace("overdue", it={}, other={})
def overdue(story: Story) -> None:
    """After a stop or a sleep everything overdue gets a time of its own within the next hour."""
    _overdue(story, 0, sleep=False)
    _overdue(story, 1, sleep=True)
    story.end(3)


def _overdue(story: Story, period: int, *, sleep: bool) -> None:
    story.at(period, 9)
    waiting = []
    for name, share in ("it", 0.25), ("other", 0.5):
        story.record(True, name)
        waiting.append(story.store(True, name, period=period, share=share))
    if sleep:
        story.at(period, 9, 60).clock(period, 14)
    else:
        story.at(period, 9, 60).stop()
        story.at(period, 14).start()
    spread = [
        story.spread(report, share) for report, share in zip(waiting, (0.75, 0.125), strict=True)
    ]
    story.sent(spread[1]).sent(spread[0])


@trace("restart", it={})
def restart(story: Story) -> None:
    """A restart draws nothing again: neither the message nor the time, nor a back-off."""
    story.at(0, 9).record()
    waiting = story.store(share=0.5)
    story.at(0, 9, 60).stop()
    story.start()
    story.record(False)
    story.sent(waiting, reply=NO_REPLY)
    (waiting,) = story.back_off(waiting, share=0.5, seen=1)
    story.at(0, 10).stop()
    story.start()
    story.sent(waiting, reply=NO_REPLY)
    (waiting,) = story.back_off(waiting, share=0.125, seen=2)
    story.sent(waiting).end(5)


def contents() -> str:
    """Return what the file says, an event a line."""
    return "".join(_lines())


def _lines() -> Iterator[str]:
    yield f'{{\n "about": {json.dumps(" ".join(ABOUT.split()))},\n "traces": ['
    for place, story in enumerate(STORIES):
        *heads, (_, events) = story().vector().items()
        yield ",\n" * (place > 0) + "\n  {\n"
        yield "".join(f"   {json.dumps(name)}: {json.dumps(value)},\n" for name, value in heads)
        yield '   "events": [\n    '
        yield ",\n    ".join(map(json.dumps, events))
        yield "\n   ]\n  }"
    yield "\n ]\n}\n"


if __name__ == "__main__":
    FILE.write_text(contents())
