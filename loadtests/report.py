"""The outcome of a run: its figures, and whether it is sound."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from veilcount_shared.verdict import Verdict

from .ipc import RequestLog
from .load_profiles import RAMP, SOAK, Terms
from .phases import knee, phase_results, table
from .resource_usage import Meter
from .server_verdicts import ServerVerdicts

FAIR = 0.5  # of the server's CPU: a generator that costs more measures itself
MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Costs:
    """What everyone took: the server's and the store's processes, and the generators' CPU."""

    server: Meter
    store: Meter
    generator: float

    @property
    def share(self) -> float:
        """The generator's, as a part of what it was to load."""
        return self.generator / max(self.server.computed + self.store.computed, 1e-9)


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """The figures of real devices."""

    devices: int
    answers: int
    attempts: int
    flushed: int  # devices that had not sent everything when patience ended


@dataclass(frozen=True, slots=True)
class FaultReport:
    """The effect of a fault, by the machine's monotonic clock."""

    name: str
    begun: float
    over: float  # whatever was down is up again
    answered: float  # the first answer that a light device had after
    caught_up: float  # when all that had been tried in vain before was answered
    delivered: float | None  # the last answer to a real device
    before: float  # answers a second before the fault
    meanwhile: float  # answers a second during the fault

    @property
    def rate(self) -> float:
        """Answers a second during the fault, as a share of those before."""
        return self.meanwhile / max(self.before, 1e-9)

    @property
    def rows(self) -> Iterator[tuple[str, str]]:
        """The rows of the report."""
        yield "fault", f"{self.name}, for {self.over - self.begun:.1f} s"
        yield "answers/s before, meanwhile", f"{self.before:,.0f}, {self.meanwhile:,.0f}"
        yield "answered again after, s", f"{max(0.0, self.answered - self.over):.2f}"
        yield "backlog gone after, s", f"{max(0.0, self.caught_up - self.over):.2f}"
        if self.delivered is not None:
            yield "all real devices done after, s", f"{max(0.0, self.delivered - self.over):.1f}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: its replies, its costs, its failures."""

    server_verdicts: ServerVerdicts
    request_log: RequestLog
    costs: Costs
    terms: Terms
    promised: float | None = None  # milliseconds
    devices: DeviceSummary | None = None
    fault_report: FaultReport | None = None
    failures: tuple[str, ...] = ()

    def milliseconds(self, percent: float) -> float:
        """Return the time within which so many of the answered sends were answered."""
        answered = self.request_log.answer_seconds
        return float(np.percentile(answered, percent)) * 1000 if answered else inf

    @property
    def unanswered(self) -> float:
        """The percentage of sends that were not answered."""
        return 100 * (1 - len(self.request_log.answer_seconds) / len(self.request_log.bodies))

    def __str__(self) -> str:
        """A table, the phases if there are several, then what is wrong."""
        rows = list(self._rows())
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:<{width}}  {value}" for name, value in rows]
        wrong = [f"FAILED: {problem}" for problem in self.failures]
        sound = ["sound: every figure is what the devices sent"]
        return "\n".join([*lines, *self._phases(), *(wrong or sound)])

    def _phases(self) -> list[str]:
        results = phase_results(self.request_log, self.terms)
        lines = [str(table(results))] if len(self.terms.course.phases) > 1 else []
        if self.terms.shape == RAMP:
            lines.append(f"knee: {knee(results, self.promised)}")
        return lines

    def _rows(self) -> Iterator[tuple[str, str]]:
        lasted, counts = self.request_log.lasted, self.server_verdicts.verdicts
        yield "load average", f"{os.getloadavg()[0]:.1f}"
        yield "seconds", f"{lasted:.1f}"
        yield "requests/s", f"{len(self.request_log.answer_seconds) / lasted:,.0f}"
        yield "reports/s", f"{counts.total() / lasted:,.0f}"
        yield "p50, ms", f"{self.milliseconds(50):.1f}"
        yield "p99, ms", f"{self.milliseconds(99):.1f}"
        yield from self._costs()
        yield "sends without a reply", f"{self.server_verdicts.silences.total():,}"
        if refused := self.server_verdicts.refusals.total():
            yield "bodies refused", f"{refused:,}"
        for verdict in Verdict:
            if counts[verdict] or verdict.delivered:
                yield verdict.value, f"{counts[verdict]:,}"
        yield from self.fault_report.rows if self.fault_report else ()
        if (devices := self.devices) is not None:
            text = f"{devices.devices}, {devices.answers} answers in {devices.attempts} requests"
            yield "real devices", text + (f", {devices.flushed} flushed" if devices.flushed else "")

    def _costs(self) -> Iterator[tuple[str, str]]:
        costs, sends = self.costs, len(self.request_log.bodies)
        yield "server CPU, us a request", f"{costs.server.computed / sends * 1e6:,.0f}"
        if costs.store.computed:
            yield "store CPU, us a request", f"{costs.store.computed / sends * 1e6:,.0f}"
        yield "generator CPU, us a request", f"{costs.generator / sends * 1e6:,.0f}"
        unfair = "" if costs.share <= FAIR else f"  (above {FAIR}: the times are its own too)"
        yield "generator / server", f"{costs.share:.2f}{unfair}"
        server = costs.server
        held = f"{server.least / MEGABYTE:.0f} at first, {server.most / MEGABYTE:.0f} at most"
        settled = f"{server.risen / MEGABYTE:+.1f} after the first quarter"
        yield "server memory, MB", f"{held}; {settled}"
        if self.terms.shape == SOAK:
            yield "slope, MB an hour", f"{server.growth / MEGABYTE * 3600:+.1f}"
