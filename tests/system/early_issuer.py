"""`veilcount issuer` by a clock that is behind: no period of a campaign has begun for it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self
from unittest.mock import patch

from veilcount_aggregator.operate.cli.main import run
from veilcount_issuer import worker

SLOW_BY = timedelta(days=30)


class EarlyDatetime(datetime):
    """Reads the clock of a month ago."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        early = datetime.now(tz) - SLOW_BY
        return cls.fromtimestamp(early.timestamp(), tz or UTC)


if __name__ == "__main__":
    with patch.object(worker, "datetime", EarlyDatetime):
        sys.exit(run(["issuer", *sys.argv[1:]]))
