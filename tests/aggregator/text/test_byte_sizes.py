"""Sizes in bytes, as operators write and read them."""

from __future__ import annotations

import pytest

from veilcount_aggregator.settings import Settings
from veilcount_analysis.text.number_format import format_bytes, parse_bytes
from veilcount_serving.errors import SettingsError

MEGABYTE = 1 << 20
STORE = {"VEILCOUNT_STORE": "sqlite:///x.db"}


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


def test_a_limit_is_a_setting_and_reaches_the_workers() -> None:
    settings = Settings.from_environment(STORE | {"VEILCOUNT_MAX_COUNTER_MEMORY": "2GB"})

    assert settings.max_counter_memory == 2048 * MEGABYTE
    assert Settings.from_environment(settings.environment()) == settings
    assert Settings("sqlite:///x.db").max_counter_memory is None


def test_a_limit_that_is_none_is_refused_with_its_name() -> None:
    with pytest.raises(SettingsError, match=r'VEILCOUNT_MAX_COUNTER_MEMORY = "much".*256MB'):
        Settings.from_environment(STORE | {"VEILCOUNT_MAX_COUNTER_MEMORY": "much"})
    with pytest.raises(SettingsError, match="give a whole number"):
        Settings.from_environment(STORE | {"VEILCOUNT_WORKERS": "x"})
