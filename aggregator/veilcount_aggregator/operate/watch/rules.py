"""The rules of a watch: a TOML file, and what each rule finds on a running aggregator.

webhook = "https://hooks.example.org/T0/B0"

[[rule]]                       # the whole interval is past the bound
name       = "dark theme wins"
collection = "theme"
estimate   = "dark > 0.6"
by         = "month"           # of the latest month; without it, of all reports

[[rule]]                       # no report was counted for six hours
name       = "intake of theme"
collection = "theme"
silent     = "6h"

[[rule]]                       # of the newest released period, under a fifth of epsilon is left
name       = "budget of age"
collection = "age"
budget     = 0.2
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import msgspec

from veilcount_reader.http_client import collection_path, url_problem
from veilcount_serving.errors import SettingsError
from veilcount_shared.collection.loading import NOT_UTF8

from ...queries import Alert, EstimateResult, decoded
from ...queries.alert import MEAN

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d+)([smhd])")
FIX = "give [[rule]] tables, each with a name, a collection and a check"
_KINDS = ("estimate", "silent", "budget")


class RunningAggregator(Protocol):
    """A running aggregator, asked with the key of an analyst."""

    def get(self, path: str, params: Mapping[str, str]) -> dict[str, Any]:
        """Return a document."""

    def counted(self, collection: str) -> int | None:
        """Return how many reports were counted; None if that is not public."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a rule finds: whether it fires, and why."""

    fires: bool
    text: str


Check = Callable[[RunningAggregator, float], RuleFinding]


class RuleTable(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A rule as it is written: one of `estimate`, `silent` and `budget`."""

    name: str
    collection: str
    estimate: str | None = None
    by: str = "all"
    looks: str = "every"  # a rule looks again and again: so its interval holds at every look
    silent: str | None = None
    budget: float | None = None

    def check(self) -> Check:
        """Return what finds out whether the rule fires, or refuse the rule."""
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise self._wrong("rule", ", ".join(kinds), f"give one of {', '.join(_KINDS)}")
        if self.estimate is not None:
            return self._estimate_check(Alert.parse(self.estimate))
        if self.silent is not None:
            return self._silence_check(self._seconds(self.silent))
        if not 0 < (self.budget or 0) <= 1:
            raise self._wrong("budget", self.budget, "give a share of the budget, such as 0.2")
        return self._budget_check(Fraction(str(self.budget)))

    def _estimate_check(self, alert: Alert) -> Check:
        params = {"by": self.by, "looks": self.looks}
        if alert.value != MEAN:
            params["values"] = alert.value
        path = collection_path(self.collection, "estimate")

        def check(aggregator: RunningAggregator, _: float) -> RuleFinding:
            result = decoded(aggregator.get(path, params), EstimateResult)
            outcome = alert.evaluate(result)
            return RuleFinding(outcome.fires, outcome.sentence)

        return check

    def _silence_check(self, seconds: float) -> Check:
        last: tuple[int, float] | None = None

        def check(aggregator: RunningAggregator, now: float) -> RuleFinding:
            nonlocal last
            counted = aggregator.counted(self.collection)
            if counted is None:
                why = "its number of reports is not public: watch the proxy's status codes instead"
                raise self._wrong("silent", self.silent, why)
            if last is None or counted != last[0]:
                last = counted, now
            quiet = timedelta(seconds=round(now - last[1]))
            return RuleFinding(
                now - last[1] >= seconds,
                f"{self.collection}: {counted:,} reports; none has come for {quiet}",
            )

        return check

    def _budget_check(self, share: Fraction) -> Check:
        path = collection_path(self.collection, "releases")

        def check(aggregator: RunningAggregator, _: float) -> RuleFinding:
            series = aggregator.get(path, {})["series"][0]
            touched = [period for period in series["periods"] if Fraction(period["spent"])]
            if not touched:
                return RuleFinding(fires=False, text=f"{self.collection}: nothing is spent")
            newest = touched[-1]
            return RuleFinding(
                Fraction(newest["remaining"]) < share * Fraction(series["budget"]),
                f"{self.collection}: of {newest['from']} to {newest['to']}, epsilon"
                f" {newest['remaining']} of {series['budget']} remains",
            )

        return check

    def _seconds(self, written: str) -> float:
        match = _DURATION.fullmatch(written.strip())
        if not match:
            raise self._wrong("silent", written, "give a time such as 30m, 6h or 2d")
        return int(match[1]) * UNITS[match[2]]

    def _wrong(self, name: str, value: object, fix: str) -> SettingsError:
        return SettingsError(f"{name} of rule {self.name!r}", str(value), fix)


class WatchRules(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A file of rules."""

    rule: list[RuleTable]
    webhook: str = ""

    @classmethod
    def load(cls, path: Path) -> WatchRules:
        """Read a file, or name what is wrong in it."""
        try:
            rules = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), cls)
        except OSError as error:
            raise SettingsError("FILE", str(path), f"{error.strerror}: give a file") from error
        except UnicodeDecodeError as error:
            raise SettingsError("FILE", str(path), NOT_UTF8) from error
        except tomllib.TOMLDecodeError as error:
            raise SettingsError("FILE", str(path), f"not readable TOML: {error}") from error
        except msgspec.ValidationError as error:
            raise SettingsError(
                "FILE", str(path), f"not a file of rules ({error}): {FIX}"
            ) from error
        names = [rule.name for rule in rules.rule]
        if twice := {name for name in names if names.count(name) > 1}:
            raise SettingsError("name", min(twice), "give each rule a name of its own")
        if rules.webhook and (why := url_problem(rules.webhook)):
            raise SettingsError("webhook", "", why)  # its path may be a secret
        return rules

    def checks(self) -> dict[str, Check]:
        """Return what checks each rule, by its name."""
        return {rule.name: rule.check() for rule in self.rule}
