"""The metrics of a running server, as totals of verdicts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from ...queries.checks.verdict_checks import NO_KEY, VerdictTotals
from ...records.service_counters import REPORTS
from ...web.api.exposition import PREFIX

_LINE = re.compile(rf"{PREFIX}(\w+)_total{{(.*)}} ([0-9.e+]+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def read_metrics(text: str) -> VerdictTotals:
    """Return the totals in the metrics of a running server."""
    totals: defaultdict[str, Counter[str]] = defaultdict(Counter)
    requests = unkeyed = 0
    for name, labelled, number in _LINE.findall(text):
        labels, times = dict(_LABEL.findall(labelled)), int(float(number))
        if name == "verdicts":
            totals[labels["collection"]][labels["verdict"]] += times
        elif name == "requests" and labels["endpoint"] == REPORTS:
            requests += times
        elif name == "refused" and labels["problem"] == NO_KEY:
            unkeyed += times
    return VerdictTotals(totals, requests, unkeyed)
