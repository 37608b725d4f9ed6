"""`python -m tests.security.supply`: 0 nothing is wrong, 1 something is, 3 that could not be asked.

What works without a network is always done first: every release pinned, every file hashed, the
installed ones those of the lock, licences; and the bill is written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import requests

from .bill import bill, unfree, unknown
from .lock import Pinned, flaws, pinned

ROOT = Path(__file__).resolve().parents[3]
LOCKS = (ROOT / "requirements.lock", ROOT / "bench" / "competitors.lock")
BILL = ROOT / "build" / "sbom.cdx.json"
WELL, FOUND, UNASKED = 0, 1, 3
SERVICE = "https://api.osv.dev"  # the open database of vulnerabilities
SECONDS = 20.0


class Unanswered(Exception):
    """The service was not reached, or did not answer: nothing is known, for good or ill."""


def advisories(parts: Sequence[Pinned], service: str = SERVICE) -> list[str]:
    """Return the advisories against these releases, each with its release; or say why not."""
    requested = [{"package": {"purl": part.purl}} for part in parts]
    try:
        reply = requests.post(
            f"{service}/v1/querybatch", json={"queries": requested}, timeout=SECONDS
        )
        reply.raise_for_status()
        results = reply.json()["results"]
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise Unanswered(type(error).__name__) from error
    if len(results) != len(parts):
        raise Unanswered(f"{len(results)} answers to {len(parts)} questions")
    return [
        f"{part.name} {part.version}: {known['id']}"
        for part, result in zip(parts, results, strict=True)
        for known in result.get("vulns", ())
    ]


def main(service: str = SERVICE) -> int:
    """Look at everything; say what was found."""
    wrong = [f"{lock.name}: {flaw}" for lock in LOCKS for flaw in flaws(lock.read_text())]
    parts = pinned(LOCKS[0])
    wrong += [*strangers(parts), *(f"licence of {each}" for each in unfree(parts))]
    wrong += [f"licence of {each} is unknown: add it to ELSEWHERE" for each in unknown(parts)]
    write(parts, BILL)
    try:
        known, unasked = advisories([*parts, *pinned(LOCKS[1])], service), ""
    except Unanswered as error:
        known, unasked = [], str(error)
    for line in (*wrong, *(f"advisory: {each}" for each in known)):
        print(line)
    if unasked:
        print(f"NOT ASKED: {service} did not answer ({unasked}); advisories are unknown")
    return FOUND if wrong or known else UNASKED if unasked else WELL


def strangers(parts: Sequence[Pinned]) -> list[str]:
    """Return what is installed here in another release than the lock's."""
    return [
        f"installed: {part.name} {here}, and not {part.version}"
        for part in parts
        if (here := _installed(part.name)) not in {"", part.version}
    ]


def write(parts: Sequence[Pinned], to: Path) -> None:
    """Write the bill, and say what it holds."""
    to.parent.mkdir(exist_ok=True)
    to.write_text(json.dumps(bill(parts), indent=1) + "\n", encoding="utf-8")
    shipped = sum(not part.developing for part in parts)
    print(f"{to.parent.name}/{to.name}: {len(parts)} parts, {shipped} of them shipped along")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # of another system
        return ""


if __name__ == "__main__":
    sys.exit(main())
