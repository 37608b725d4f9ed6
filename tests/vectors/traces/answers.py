"""Traces of what a period reports, and of hidden presence."""

from __future__ import annotations

from dataclasses import replace

from veilcount_shared import schedule

from ...client.device_fixtures import HOUR, MINUTE
from ..trace_story import TRUE_VALUE, Story, middle_of_day
from .stories import EVENT, LAST, Stories

STORIES = Stories()
trace = STORIES.trace


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
