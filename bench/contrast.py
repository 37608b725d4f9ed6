"""What comparing the trust models costs: the search for the epsilon behind a shuffler."""

from __future__ import annotations

from fractions import Fraction
from time import process_time

from veilcount_analysis.privacy.trust_models import compare_trust_models
from veilcount_shared import parse_collections

from .table import Row, Table

REPORTS = (1000, 100_000, 5_000_000, 100_000_000)
EPSILONS = (Fraction(1), Fraction(4))
VALUES = 64
LIMIT = 500  # milliseconds, at
PROMISED = 5_000_000  # reports

DEFINITION = """
app = "bench"
[question]
question = "Which of many?"
values = {values}
epsilon = {epsilon}
unit = "user"
from = 2026-01-01
until = 2026-12-31
"""
COLUMNS = {"reports": ",d", "eps": "", "ms": ".0f", "target": "", "met": ""}
NOTES = (
    "CPU time, nothing cached; the first comparison of a process imports scipy.stats as well.",
)


def run(*, quick: bool) -> Table:
    """Compare once for each size and epsilon; one comparison before imports what is needed."""
    _milliseconds(2000, Fraction(3))
    sizes = (PROMISED,) if quick else REPORTS
    rows = [_measure(reports, epsilon) for reports in sizes for epsilon in EPSILONS]
    return Table("contrast: what comparing the trust models costs", COLUMNS, rows, NOTES)


def _measure(reports: int, epsilon: Fraction) -> Row:
    taken = _milliseconds(reports, epsilon)
    row: Row = {"reports": reports, "eps": str(epsilon), "ms": taken}
    promised: Row = {"target": f"<= {LIMIT} ms", "met": taken <= LIMIT}
    return {**row, **promised} if reports == PROMISED else row


def _milliseconds(reports: int, epsilon: Fraction) -> float:
    values = [f"v{number}" for number in range(VALUES)]
    text = DEFINITION.format(values=str(values).replace("'", '"'), epsilon=epsilon)
    collection = parse_collections(text, lambda _: [])["question"]
    start = process_time()
    compare_trust_models(collection, reports)
    return 1000 * (process_time() - start)
