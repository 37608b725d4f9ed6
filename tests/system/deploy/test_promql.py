"""The evaluator of alerts: what Prometheus's documentation says of each construct, by example."""

from __future__ import annotations

import pytest

from tests.system.deploy.promql import Scrape, Vector, evaluate, fires, read

BEFORE = """
# HELP requests_total Requests.
requests_total{door="a",status="2xx"} 10
requests_total{door="b",status="5xx"} 5
restarted_total{} 90
took_bucket{le="1.0"} 0
took_bucket{le="2.0"} 0
took_bucket{le="+Inf"} 0
"""
AFTER = """
requests_total{door="a",status="2xx"} 40
requests_total{door="b",status="5xx"} 5
requests_total{door="c",status="5xx"} 9
restarted_total{} 30
took_bucket{le="1.0"} 50
took_bucket{le="2.0"} 100
took_bucket{le="+Inf"} 100
store{engine="sqlite",durable="no"} 1
"""
SCRAPES = [Scrape(100, list(read(BEFORE))), Scrape(160, list(read(AFTER)))]


def vector(expression: str, now: float = 160) -> Vector:
    """Return an expression's value, which must be a vector."""
    value = evaluate(expression, SCRAPES, now)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ('requests_total{door="a"}', [40]),
        ('requests_total{door!="a"}', [5, 9]),
        ('requests_total{door=~"a|b"}', [5, 40]),
        ("requests_total offset 1m", [5, 10]),
        ("rate(requests_total[1m])", [0, 0.5]),
        ("increase(requests_total[1m])", [0, 30]),
        ("rate(requests_total[30s])", []),
        ("increase(restarted_total[1m])", [30]),
        ("sum(requests_total)", [54]),
        ("sum by (status) (requests_total)", [14, 40]),
        ("count(requests_total)", [3]),
        ("max by (status) (requests_total)", [9, 40]),
        ("2 * 3 - requests_total * 2", [-74, -12, -4]),
        ("requests_total > 8 and requests_total < 10", [9]),
        ('store{durable!="yes"} == 1', [1]),
        ('store == 1 unless on () requests_total{door="a"}', []),
        ('store == 1 unless on () requests_total{door="z"}', [1]),
        ("missing or store", [1]),
        ("histogram_quantile(0.75, rate(took_bucket[1m]))", [1.5]),
        ('store * on (x) group_left () sum by (x) (requests_total{door="a"})', [40]),
        ("time() - requests_total > 150", [151, 155]),
        ("abs(2 - requests_total) < 8", [3, 7]),
    ],
)  # fmt: skip
def test_each_construct(expression: str, numbers: list[float]) -> None:
    assert sorted(vector(expression).values()) == pytest.approx(numbers)


def test_an_alert_fires_where_anything_is_left() -> None:
    assert fires("requests_total > 39", SCRAPES, 160)
    assert not fires("requests_total > 40", SCRAPES, 160)
    assert not fires("requests_total > 39", SCRAPES, 99)
    # an empty histogram has no quantile
    assert not fires("histogram_quantile(0.5, took_bucket) > 0", SCRAPES, 100)


@pytest.mark.parametrize("expression", ["deriv(store[1h])", "store / 1", "store store", "1 > 0"])
def test_what_is_not_known_is_an_error(expression: str) -> None:
    with pytest.raises(ValueError, match=r"not understood|compared"):
        evaluate(expression, SCRAPES, 160)
