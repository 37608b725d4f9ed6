"""Write tests/vectors/trace.json: `python -m tests.vectors.trace_maker`.

The stories are in `traces`, one function each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .traces import answers, consent_and_clocks, delivery

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
STORIES = (*answers.STORIES, *delivery.STORIES, *consent_and_clocks.STORIES)


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
