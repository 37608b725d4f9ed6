"""The collections of the demo, with dates that begin four months ago."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np

from veilcount_analysis.mechanisms.sampling import Ints
from veilcount_analysis.series.series import utc_day
from veilcount_shared import Collection, periods
from veilcount_shared.periods import Unit

from ...records.definitions import DefinitionSource

_FIRST = (
    "Alder", "Amber", "Badger", "Birch", "Bramble", "Chapel", "Clover", "Copper", "Cuckoo",
    "Eagle", "Ember", "Fern", "Fox", "Granite", "Hare", "Hazel", "Heather", "Heron", "Ivy",
    "Juniper", "Kestrel", "Lantern", "Larch", "Linden", "Marten", "Maple", "Mill", "Miller's",
    "Otter", "Owl", "Pilgrim", "Quarry", "Raven", "Rowan", "Shepherd's", "Silver", "Smuggler's",
    "Thistle", "Willow", "Wren",
)  # fmt: skip
_SECOND = (
    "Arch", "Bay", "Bend", "Bluff", "Bridge", "Brook", "Canyon", "Chase", "Cliff", "Combe",
    "Crag", "Creek", "Crossing", "Dale", "Dell", "Edge", "Falls", "Fell", "Field", "Ford",
    "Gap", "Garden", "Glen", "Grove", "Gully", "Heath", "Hill", "Hollow", "Knoll", "Ladder",
    "Lake", "Ledge", "Loop", "Marsh", "Meadow", "Moor", "Pass", "Peak", "Point", "Pond",
    "Ridge", "Rise", "Rock", "Shore", "Spring", "Stairs", "Tarn", "Valley", "View", "Woods",
)  # fmt: skip

TRAILS = tuple(f"{first} {second}" for first in _FIRST for second in _SECOND)


FILE, BETA_FILE, GUIDE_FILE = "collections.toml", "shared_position.toml", "guide.toml"
VALUES = "trails.txt"
WRITTEN = ("2026-07-01", "2027-01-01")  # the dates of the file
DAYS_A_WEEK = 7
BEFORE, LASTS = 4, 6  # months: since it began, and in total

#: the last days of the replay: a beta installs the app, has its tokens a day later, and answers on
#: one of two days from then on
BETA_DAYS, BETA_TOKENS, BETA_ANSWERS = 7, 2, 2

GUIDE_WEEKS = 3  # ago: the week that is asked about, whose batch leaves a week after its end

SCREEN, SCREENS = "home", ("list", "map")  # a segment: the home screen


class Question(StrEnum):
    """The collections, by name."""

    DARK_MAP = "dark_map"
    FIRST_TAP = "first_tap"
    TRAIL = "trail"
    WALK_MINUTES = "walk_minutes"
    WAY_THERE = "way_there"
    WAY_THERE_CENTRAL = "way_there_central"
    SHARED_POSITION = "shared_position"  # over a relay, with tokens; in a file of its own
    GUIDE = "guide"  # by a shuffler; likewise


@dataclass(frozen=True)
class Campaign:
    """The definitions, and the days of the campaign up to an instant."""

    now: datetime

    @property
    def today(self) -> date:
        """The UTC day on which the replay ends."""
        return utc_day(self.now)

    @property
    def start(self) -> date:
        """The first day of a month, four before this one."""
        return periods.first_day(Unit.MONTH, self.today, -BEFORE)

    @property
    def until(self) -> date:
        """The first day after the campaign."""
        return periods.first_day(Unit.MONTH, self.start, LASTS)

    @property
    def begins(self) -> datetime:
        """The first instant of the campaign."""
        return datetime.combine(self.start, time(), UTC)

    @property
    def ends(self) -> datetime:
        """The first instant after the campaign."""
        return datetime.combine(self.until, time(), UTC)

    @property
    def days(self) -> int:
        """How many days are replayed, today included."""
        return (self.today - self.start).days + 1

    def day(self, number: int) -> date:
        """Return a day of the replay."""
        return self.start + timedelta(days=number)

    @property
    def beta_installs(self) -> int:
        """The day of the replay on which the beta installs the app."""
        return self.days - 1 - BETA_DAYS

    @property
    def beta_answers(self) -> range:
        """The days of the replay on which the beta answers: tokens are issued before them."""
        first = self.beta_installs + BETA_TOKENS
        return range(first, first + BETA_ANSWERS)

    @property
    def guide_begins(self) -> date:
        """The first day of the week whose answers travel by shuffler."""
        return periods.first_day(Unit.WEEK, self.today, -GUIDE_WEEKS)

    @property
    def guide_days(self) -> range:
        """The days of the replay that lie in that week."""
        first = (self.guide_begins - self.start).days
        return range(first, first + DAYS_A_WEEK)

    @cached_property
    def periods(self) -> Mapping[Unit, Ints]:
        """The period that each day of the replay lies in."""
        return {
            unit: np.array(
                [
                    periods.period_number(unit, self.start, self.day(number))
                    for number in range(self.days)
                ]
            )
            for unit in Unit
        }

    @cached_property
    def source(self) -> DefinitionSource:
        """The definitions as an app would ship them."""
        return DefinitionSource(
            self._dated(FILE, (self.start, self.until)), {VALUES: "\n".join(TRAILS)}
        )

    @cached_property
    def collections(self) -> dict[str, Collection]:
        """The definitions, parsed."""
        return self.source.collections()

    def write(self, folder: Path) -> Path:
        """Write definitions where a device or an aggregator can read them."""
        for name, text in {FILE: self.source.text, **self.source.files}.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder / FILE

    def write_beta(self, folder: Path) -> Path:
        """Write the definition of the beta's question."""
        days = self.beta_answers
        dates = self.day(days.start), self.day(days.stop)
        (folder / BETA_FILE).write_text(self._dated(BETA_FILE, dates), encoding="utf-8")
        return folder / BETA_FILE

    def write_guide(self, folder: Path) -> Path:
        """Write the definition of the question whose reports travel by shuffler."""
        dates = self.guide_begins, self.guide_begins + timedelta(days=DAYS_A_WEEK)
        (folder / GUIDE_FILE).write_text(self._dated(GUIDE_FILE, dates), encoding="utf-8")
        return folder / GUIDE_FILE

    def _dated(self, name: str, dates: tuple[date, date]) -> str:
        """Return the text of a file, with other dates."""
        text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        for written, meant in zip(WRITTEN, dates, strict=True):
            text = text.replace(written, meant.isoformat())
        return text
