"""What is known against a release: one question to the open database of vulnerabilities (OSV)."""

from __future__ import annotations

from collections.abc import Sequence

import requests

from .lock import Pinned

SERVICE = "https://api.osv.dev"
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
