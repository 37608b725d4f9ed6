"""The time for which a server keeps a row after its last report may arrive.

The notice promises it to people, and the aggregator keeps it.
"""

from __future__ import annotations

from datetime import timedelta

#: an epoch's spent slots outlive `late` by so many days: a clock that is set back finds them
GRACE = timedelta(days=1)
#: rows of a dropped epoch stay for so long: with them a drop by a wrong clock can be undone
RECOVERABLE = timedelta(days=1)
