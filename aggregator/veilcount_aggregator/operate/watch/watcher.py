"""The state of each rule: an event when it begins to fire, and one when that is over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import requests

from veilcount_shared.errors import VeilcountError

from .rules import Check, RuleFinding, RunningAggregator

#: the rule that every watch has: whether the others can be checked
REACHABLE = "aggregator"
ROUNDS = 2  # without an answer, before it fires: one is a restart


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A change that a webhook receives: a rule begins to fire, or no longer does."""

    rule: str
    state: str  # firing or resolved
    text: str
    at: str

    def __str__(self) -> str:
        return f"{self.at} {self.rule}: {self.state}: {self.text}"

    def as_json(self) -> dict[str, Any]:
        """Return it as a document."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]


class Watcher:
    """Checks rules again and again; each change is one event."""

    def __init__(self, checks: Mapping[str, Check], rounds: int = ROUNDS) -> None:
        """Begin with no rule firing; of so many rounds without an answer one event is made."""
        self._checks = checks
        self._rounds = rounds
        self._firing: set[str] = set()
        self._failed = 0  # rounds in a row

    def look(
        self, aggregator: RunningAggregator, seconds: float, now: datetime
    ) -> Iterator[WatchEvent]:
        """Check each rule once; yield what has begun and what is over."""
        failures = []
        for name, check in self._checks.items():
            try:
                finding = check(aggregator, seconds)
            except (VeilcountError, requests.RequestException, msgspec.ValidationError) as error:
                failures.append(f"{name}: {_reason(error)}")
            else:
                yield from self._change(name, finding, now)
        self._failed = self._failed + 1 if failures else 0
        text = "; ".join(failures) or "all rules are checked again"
        if self._failed >= self._rounds or not failures:
            yield from self._change(REACHABLE, RuleFinding(bool(failures), text), now)

    def _change(self, name: str, finding: RuleFinding, now: datetime) -> Iterator[WatchEvent]:
        if finding.fires == (name in self._firing):
            return
        self._firing ^= {name}
        state = "firing" if finding.fires else "resolved"
        yield WatchEvent(name, state, finding.text, now.isoformat(timespec="seconds"))


def _reason(error: Exception) -> str:
    """Return what went wrong: of a library only the class, whose text may hold an address."""
    return str(error) if isinstance(error, VeilcountError) else type(error).__name__
