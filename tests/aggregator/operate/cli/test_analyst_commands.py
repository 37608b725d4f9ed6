"""`veilcount estimate`, `compare` and `budget`: from a store, and from a server alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from veilcount_aggregator.records.api_keys import Role, create_key
from veilcount_aggregator.store import open_store
from veilcount_shared.installing import install

from .conftest import CITIES, Type
from .server_fixtures import serving


@pytest.fixture(scope="module")
def served(answered: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    with closing(open_store(answered)) as store:
        _, key = create_key(store, Role.ANALYST, "test", datetime.now(UTC))
    with serving(answered) as address:
        yield answered, ("--url", address, "--key", key)


def test_every_share_stands_with_interval_n_and_epsilon(typed: Type, answered: str) -> None:
    printed = typed("estimate", "theme", "--store", answered)
    dark = next(line for line in printed.out.splitlines() if line.startswith("dark"))

    assert printed.code == 0
    assert "n = 8,000 reports" in printed.out
    assert "epsilon (substitution) 1 an event, 1 a day, 1 a user" in printed.out
    assert "valid at one planned look" in printed.out
    assert dark.count("%") == 5
    assert " to " in dark
    assert "users" not in printed.out


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_has_all_values_by_default(
    typed: Type, served: tuple[str, tuple[str, ...]], tmp_path: Path, form: str
) -> None:
    """A page has 100 of the 230 values; a server and its store give the same file."""
    url, source = served
    files = []
    for number, where in enumerate((source, ("--store", url))):
        file = tmp_path / f"{number}.{form}"
        words = ("estimate", "city", "--format", form, *where, "--output", str(file))
        assert typed(*words).code == 0
        files.append(file.read_bytes())
        assert len(read(form, file)) == CITIES
        assert typed(*words, "--size", "7").code == 0
        assert len(read(form, file)) == 7

    assert files[0] == files[1]


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_none(
    typed: Type, answered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("estimate", "theme", "--store", answered, "--output", str(tmp_path / "file"))
    table, nowhere = typed(*words), typed(*words, "--format", "csv", "--output", "no/such/folder")
    for name in ("pyarrow", "arro3.core"):
        monkeypatch.setitem(sys.modules, name, None)
    without = typed(*words, "--format", "parquet")

    assert "--output is for --format csv or parquet" in table.err
    assert "no/such/folder" in nowhere.err
    assert install("arrow") in without.err
    assert (table.code, nowhere.code, without.code) == (2, 2, 2)
    assert list(tmp_path.iterdir()) == []


def read(form: str, file: Path) -> pd.DataFrame:
    return pd.read_csv(file) if form == "csv" else pd.read_parquet(file)


def test_the_command_takes_the_parameters_of_the_endpoint(typed: Type, answered: str) -> None:
    flags = "--fakes 0.2 --size 2 --among all --segment arm:A --looks every"
    found = typed("estimate", "theme", *flags.split(), "--store", answered, "--json").json
    time_range = found["series"][0]["ranges"][0]

    assert (found["fakes"], found["looks"]) == (0.2, "every")
    assert (found["series"][0]["facts"]["pages"], time_range["n"]) == (2, 4_000)


def test_a_contrast_is_of_the_answers_that_are_there(typed: Type, answered: str) -> None:
    printed = typed("contrast", "theme", "--store", answered)

    assert "at n = 8,000: reports of the fullest period (" in printed.out
    assert "UTC). Observed, at 95" in printed.out


@pytest.mark.parametrize(
    ("alert", "code", "word"),
    [
        ("dark > 0.6", 1, "ALARM: dark is above 0.6"),
        ("dark > 0.7", 0, "No alarm"),
        ("dark < 0.8", 1, "ALARM: dark is below 0.8"),
    ],
)
def test_an_alert_fires_only_if_the_whole_interval_is_past_the_bound(
    typed: Type, answered: str, alert: str, code: int, word: str
) -> None:
    """With `--json` it is said on stderr."""
    words = ("estimate", "theme", "--store", answered, "--alert", alert)
    looked, as_json = typed(*words), typed(*words, "--json")

    assert (looked.code, as_json.code) == (code, code)
    assert word in looked.out
    assert "n = 8,000" in looked.out.splitlines()[-1]
    assert as_json.json["collection"] == "theme"
    assert word in as_json.err


def test_a_comparison_says_what_could_have_been_seen(typed: Type, answered: str) -> None:
    words = ("compare", "theme", "arm:A", "arm:B", "--looks", "every", "--store", answered)
    printed, document = typed(*words), typed(*words, "--json").json

    assert printed.code == 0
    assert "would have been seen 4 times in 5" in printed.out
    assert "Detectable" in printed.out
    assert "valid at every look" in printed.out
    assert printed.out.count("n = 4,000 reports") == 2
    assert not any(row["differs"] for row in document["rows"])


def test_the_budget_says_what_is_promised_and_what_was_counted(typed: Type, answered: str) -> None:
    printed = typed("budget", "theme", "--store", answered)
    account = typed("budget", "theme", "--store", answered, "--json").json["series"][0]["budget"]

    assert printed.code == 0
    assert [account["figures"][key] for key in ("event", "day", "user")] == ["1", "1", "1"]
    assert account["spent"]["pseudonyms"] == 8_000
    assert "8,000 pseudonyms have spent epsilon 1 on average, 1 at most" in printed.out


@pytest.mark.parametrize(
    "line",
    ["estimate theme --top 2", "estimate minutes", "compare theme arm:A arm:B", "contrast theme"],
)
def test_a_server_says_what_its_store_says(
    typed: Type, served: tuple[str, tuple[str, ...]], line: str
) -> None:
    url, source = served
    at_server, in_store = (
        typed(*line.split(), *where, "--json").json for where in (source, ("--store", url))
    )

    assert at_server == in_store


def test_a_server_keeps_bars_for_admins(typed: Type, served: tuple[str, tuple[str, ...]]) -> None:
    url, source = served
    at_server, in_store = (
        typed("budget", "theme", *where, "--json").json["series"][0]["budget"]["spent"]
        for where in (source, ("--store", url))
    )

    assert in_store["bars"]
    assert at_server == in_store | {"bars": []}


def test_a_server_refuses_in_its_own_words(
    typed: Type, served: tuple[str, tuple[str, ...]]
) -> None:
    _, (_, url, _, key) = served
    unknown = typed("estimate", "theem", "--url", url, "--key", key)
    stranger = typed("estimate", "theme", "--url", url, "--key", "veilcount_analyst_no")

    assert (unknown.code, stranger.code) == (2, 2)
    assert "did you mean theme?" in unknown.err
    assert "keys create" in stranger.err


def test_what_is_typed_comes_before_the_environment(
    typed: Type, answered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILCOUNT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("VEILCOUNT_KEY", "any")

    assert typed("estimate", "theme", "--store", answered).code == 0
    assert typed("estimate", "theme").code == 3
