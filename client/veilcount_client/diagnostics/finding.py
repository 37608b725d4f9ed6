"""What a check found, and how it is told: a line each, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class DiagnosticResult:
    """One thing that was looked at. Where not all is well, the text says what to do."""

    about: str
    well: bool
    says: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.well else 'mend'}  {self.about}: {self.says}"


def tell(findings: Iterable[DiagnosticResult], *, as_json: bool) -> str:
    """Return findings for a terminal, or for a program."""
    found = list(findings)
    if not as_json:
        return "\n".join(map(str, found))
    well = all(each.well for each in found)
    return json.dumps({"well": well, "findings": [asdict(each) for each in found]}, indent=2)
