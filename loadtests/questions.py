"""The questions of a run, one of each mechanism, and the distributions of their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from random import Random
from typing import NoReturn

from veilcount_shared import Collection, parse_collections

THEMES = 64
PLUGINS = 2_000
MINUTES = 240

_FILE = """
app = "load"

[autosave]                       # a coin; one pseudonym for the campaign, twenty answers in a body
question = "Is autosave on?"
boolean = true
epsilon = 1
unit = "day"
linkage = "collection"
answers = 20
from = {month_ago}
until = {tomorrow}

[theme]                          # subsets; nothing links, so a body carries one report
question = "Which theme is active?"
values = {themes}
epsilon = 2
unit = "day"
linkage = "none"
from = {today}
until = {tomorrow}

[plugin]                         # a plane; two public segments
question = "Which plugin was opened last?"
values = {plugins}
epsilon = 3
unit = "day"
segments = {{arm = ["A", "B"]}}
from = {today}
until = {tomorrow}

[minutes]                        # a mean; sixteen answers a day under one pseudonym
question = "How long was this session?"
range = [0, {minutes}]
measure = "mean"
epsilon = 1
unit = "event"
per_day = 16
from = {today}
until = {tomorrow}
"""

FLOODED_NAME = "survey"
_FLOODED = """
[survey]                         # nobody answers it: what comes is a flood of made-up pseudonyms
question = "Which colour?"
values = ["red", "green", "blue"]
epsilon = 1
unit = "day"
linkage = "none"
from = {today}
until = {tomorrow}
"""

LARGE = "catalog"
_LARGE = """
[catalog]                      # a million values, ten cells a day: 1.4 million counters each
question = "Is it in use, and by whom?"
boolean = true
cross = {{a = {hundred}, b = {hundred}, c = {fifty}}}
epsilon = 1
unit = "day"
segments = {{region = {ten}}}
from = {month_ago}
until = {tomorrow}
"""

#: what a person holds, drawn by chance: the place of a value, or a number
VALUE_DISTRIBUTIONS: Mapping[str, Callable[[Random], int]] = {
    "autosave": lambda chance: int(chance.random() < 0.3),
    "theme": lambda chance: min(int(chance.expovariate(1 / 3)), THEMES - 1),
    "plugin": lambda chance: min(int(chance.expovariate(1 / 5)), PLUGINS - 1),
    "minutes": lambda chance: min(int(chance.expovariate(1 / 40)), MINUTES),
}


def definitions(today: date, *, flooded: bool = False) -> str:
    """Return the definitions file of a run on this day: every period of it is open. `flooded` adds
    two questions for attackers alone.
    """
    day = timedelta(days=1)
    return (_FILE + (_FLOODED + _LARGE) * flooded).format(
        hundred=_names(100),
        fifty=_names(50),
        ten=_names(10),
        month_ago=today - 27 * day,
        today=today,
        tomorrow=today + day,
        themes=list(range(THEMES)),
        plugins=list(range(PLUGINS)),
        minutes=MINUTES,
    )


def _names(number: int) -> str:
    return json.dumps([f"v{place}" for place in range(number)])


def questions(today: date, *, flooded: bool = False) -> dict[str, Collection]:
    """Return the collections of that file."""
    return parse_collections(definitions(today, flooded=flooded), _no_file)


def _no_file(name: str) -> NoReturn:
    raise FileNotFoundError(name)
