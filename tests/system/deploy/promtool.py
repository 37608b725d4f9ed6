"""Rules of Prometheus, evaluated by its own `promtool` over scrapes with times of their own.

Between two scrapes, and after the last, a gauge stays as it is and a counter goes on growing as it
did: so a state of a deployment lasts for as long as a rule's `for`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[3]
UNPACKED = ROOT / ".promtool_cache"  # by ./dev: the package would start a daemon
MINUTE = 60
GROWS = re.compile(r"_(total|bucket|count|sum)$")
UNITS = {"m": 1, "h": 60}

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]


class Sample(NamedTuple):
    """One line of an exposition."""

    name: str
    labels: dict[str, str]
    value: float


class Scrape(NamedTuple):
    """What was read at one instant."""

    at: float
    samples: Sequence[Sample]


def read(exposition: str) -> Iterator[Sample]:
    for line in exposition.splitlines():
        if match := re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line):
            labels = re.findall(r'(\w+)="([^"]*)"', match[2] or "")
            yield Sample(match[1], dict(labels), float(match[3]))


def meets(sample: Sample, label: str, how: str, value: str) -> bool:
    held = sample.labels.get(label, "")
    same = bool(re.fullmatch(value, held)) if how == "=~" else held == value
    return same == (how != "!=")


def run_promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool", path=f"{os.environ['PATH']}:{UNPACKED}")
    assert program, "promtool is missing: ./dev test unpacks it"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def is_true(rule: Mapping[str, Any], scrapes: Sequence[Scrape], at: float, folder: Path) -> bool:
    """Whether a rule's expression has a result at an instant."""
    minute = round(at / MINUTE)
    test = {"expr": rule["expr"], "eval_time": f"{minute}m", "exp_samples": []}
    return _differs({"promql_expr_test": [test]}, rule, scrapes, minute, folder)


def fires(rule: Mapping[str, Any], scrapes: Sequence[Scrape], at: float, folder: Path) -> bool:
    """Whether a rule's alert fires half an hour after its `for`, in a state that lasts."""
    period = rule.get("for", "0m")
    minute = round(at / MINUTE) + int(period[:-1]) * UNITS[period[-1]] + 30
    test = {"alertname": rule["alert"], "eval_time": f"{minute}m", "exp_alerts": []}
    return _differs({"alert_rule_test": [test]}, rule, scrapes, minute, folder)


def _differs(
    test: dict[str, Any],
    rule: Mapping[str, Any],
    scrapes: Sequence[Scrape],
    minutes: int,
    folder: Path,
) -> bool:
    """Run a test that expects nothing; return whether there is something."""
    rules, tests = folder / "rule.yml", folder / "test.yml"
    rules.write_text(json.dumps({"groups": [{"name": "one", "rules": [rule]}]}))
    series = [
        {"series": _selector(key), "values": " ".join(_values(key, scrapes, minutes))}
        for key in _keys(scrapes)
        if key[0] in rule["expr"]
    ]
    one = {"interval": "1m", "input_series": series, **test}
    tests.write_text(json.dumps({"rule_files": [str(rules)], "tests": [one]}))
    result = run_promtool("test", "rules", str(tests))
    assert result.returncode == 0 or "got:" in result.stdout + result.stderr, result
    return result.returncode != 0


def _keys(scrapes: Sequence[Scrape]) -> list[Key]:
    return sorted({_key(sample) for scrape in scrapes for sample in scrape.samples})


def _key(sample: Sample) -> Key:
    return sample.name, tuple(sorted(sample.labels.items()))


def _selector(key: Key) -> str:
    name, labels = key
    return f"{name}{{{', '.join(f'{label}={json.dumps(value)}' for label, value in labels)}}}"


def _values(key: Key, scrapes: Sequence[Scrape], minutes: int) -> Iterator[str]:
    """Yield a series' value at each minute: `_` where there is none, `stale` where it has gone."""
    points = [
        (scrape.at / MINUTE, next((s.value for s in scrape.samples if _key(s) == key), None))
        for scrape in sorted(scrapes, key=lambda scrape: scrape.at)
    ]
    is_gone = True
    for minute in range(minutes + 1):
        place = sum(at <= minute for at, _ in points) - 1
        value = points[place][1] if place >= 0 else None
        if value is not None and GROWS.search(key[0]):
            value += _growth(points, place) * (minute - points[place][0])
        yield f"{value:.9g}" if value is not None else "_" if is_gone else "stale"
        is_gone = value is None


def _growth(points: Sequence[tuple[float, float | None]], place: int) -> float:
    """Return the growth per minute to the next scrape; after the last one, to the last."""
    later = min(place + 1, len(points) - 1)
    (begins, before), (ends, after) = points[max(later - 1, 0)], points[later]
    if before is None or after is None or ends == begins:
        return 0.0
    return max(0.0, (after - before) / (ends - begins))
