"""Traces of consent, forgetting, wrong clocks and restarts."""

from __future__ import annotations

from veilcount_shared import schedule

from ...client.device_fixtures import HOUR
from ..trace_story import NO_REPLY, Story, middle_of_day, verdicts
from .stories import EVENT, LAST, Stories

STORIES = Stories()
trace = STORIES.trace


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
