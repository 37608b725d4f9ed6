"""What operators say and read of counters' memory: sizes, settings, worst cases, verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.aggregator.api.deployment_fixtures import FILE, deployment
from tests.aggregator.store.redis.simulated_rows import million
from tests.aggregator.store.series_fixtures import DAILY, series
from veilcount_aggregator.analysis.counter_memory import memory_at_most, memory_remarks
from veilcount_aggregator.errors import SettingsError
from veilcount_aggregator.ingest.pseudonym_limit import PseudonymLimit
from veilcount_aggregator.settings import Settings
from veilcount_aggregator.store import MemoryLimits
from veilcount_aggregator.store.memory_limit import MemoryUse, tally_bytes
from veilcount_aggregator.text.number_format import format_bytes, parse_bytes
from veilcount_shared.verdict import Verdict

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("256 MiB", 256 * MEGABYTE), ("2gb", 2048 * MEGABYTE), ("512k", 512 << 10)],
)
def test_sizes_are_read_as_redis_reads_them(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0MB", "-1", "1.5GB", "12 XB", "MB", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="256MB"):
        parse_bytes(text)


def test_sizes_are_written_with_three_digits() -> None:
    sizes = [7, 1023, 1024, 1500, 1000 * MEGABYTE, 22_900 * MEGABYTE, 1 << 52]
    written = "7 bytes|1,023 bytes|1 KB|1.46 KB|1,000 MB|22.4 GB|4,096 TB"

    assert "|".join(map(format_bytes, sizes)) == written


def test_limits_are_settings_and_reach_the_workers() -> None:
    limits = {"VEILCOUNT_MAX_SERIES_MEMORY": "64MB", "VEILCOUNT_MAX_STORE_MEMORY": "2GB"}
    settings = Settings.from_environment({"VEILCOUNT_STORE": "sqlite:///x.db"} | limits)

    assert settings.max_series_memory == 64 * MEGABYTE
    assert settings.max_store_memory == 2048 * MEGABYTE
    assert Settings.from_environment(settings.environment()) == settings
    assert Settings("sqlite:///x.db").max_series_memory == 256 * MEGABYTE


@pytest.mark.parametrize("name", ["VEILCOUNT_MAX_SERIES_MEMORY", "VEILCOUNT_MAX_STORE_MEMORY"])
def test_a_limit_that_is_none_is_refused_with_its_name(name: str) -> None:
    with pytest.raises(SettingsError, match=f'{name} = "much".*256MB'):
        Settings.from_environment({"VEILCOUNT_STORE": "sqlite:///x.db", name: "much"})
    with pytest.raises(SettingsError, match="give a whole number"):
        Settings.from_environment({"VEILCOUNT_STORE": "sqlite:///x.db", "VEILCOUNT_WORKERS": "x"})


def test_one_series_has_half_of_what_redis_has_for_all() -> None:
    use = MemoryUse({"a": 1, "b": 2}, limit=100 * MEGABYTE)

    assert use.series_limit(MemoryLimits()) == 50 * MEGABYTE
    assert use.series_limit(MemoryLimits(MEGABYTE)) == MEGABYTE
    assert use.series_limit(MemoryLimits(store=MEGABYTE)) == 256 * MEGABYTE
    assert use.store_limit(MemoryLimits()) == 100 * MEGABYTE
    assert use.store_limit(MemoryLimits(store=MEGABYTE)) == MEGABYTE
    assert MemoryUse({}, None).series_limit(MemoryLimits()) == 256 * MEGABYTE
    assert use.total == 3


def test_a_definition_that_may_exceed_the_limit_is_remarked_on() -> None:
    """A daily question does not; nearly a million counters in 32 cells a day do."""
    (remark,) = memory_remarks(million(32).collection)

    assert memory_at_most(DAILY.collection) == (
        "counters take at most 21.2 KB: 63 periods x 1 cell x 3 counters"
    )
    assert memory_remarks(DAILY.collection) == []
    assert remark.key == "memory"
    assert "at most 14.3 GB: 63 periods x 32 cells x 936,057 counters, in each shard" in remark.text
    assert "--max-series-memory" in remark.text


def test_a_secret_count_has_a_secret_limit() -> None:
    """`full` would tell how much was there: drawn for each series, the same in every worker."""
    secret = series("plain", "per_day = 2", unit="event")
    limits = MemoryLimits(1_000_000)
    limit = PseudonymLimit(100, lambda: b"key")

    assert limit.memory(DAILY, limits) == limits
    drawn = limit.memory(secret, limits)
    assert 500_000 < drawn.series <= 1_000_000
    assert limit.memory(secret, limits) == drawn
    assert PseudonymLimit(100, lambda: b"other").memory(secret, limits) != drawn


def test_a_report_over_the_memory_of_its_series_is_full(tmp_path: Path) -> None:
    one = tally_bytes(3)
    with deployment(tmp_path, FILE, max_series_memory=one) as made:
        first = made.report("theme")
        assert made.verdicts(first, made.report("alone")) == [Verdict.COUNTED] * 2
        assert made.verdicts(first, made.report("theme")) == [Verdict.DUPLICATE, Verdict.COUNTED]
    with deployment(tmp_path / "small", FILE, max_series_memory=one - 1) as made:
        assert made.verdicts(made.report("theme")) == [Verdict.FULL]
        assert made.verdicts(made.report("alone")) == [Verdict.COUNTED]
