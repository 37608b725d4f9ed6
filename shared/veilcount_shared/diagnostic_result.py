"""The results of checks on a device or of its definitions, for a terminal or for a program."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class DiagnosticResult:
    """One thing that was checked. If it is not ok, the message says what to do."""

    subject: str
    ok: bool
    message: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.ok else 'fix '}  {self.subject}: {self.message}"

    @classmethod
    def from_problem(cls, subject: str, problem: str | None, otherwise: str) -> DiagnosticResult:
        """Return the problem of a subject, or what holds without one."""
        return cls(subject, problem is None, problem or otherwise)


def render(results: Iterable[DiagnosticResult], *, as_json: bool) -> str:
    """Return results for a terminal, or for a program."""
    findings = list(results)
    if not as_json:
        return "\n".join(map(str, findings))
    ok = all(finding.ok for finding in findings)
    return json.dumps({"ok": ok, "results": [asdict(finding) for finding in findings]}, indent=2)
