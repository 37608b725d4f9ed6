"""The notebook's reader, against real endpoints on a real port."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tests.aggregator.api.deployment_fixtures import Deployment, deployment
from tests.aggregator.cli.server_fixtures import listening
from tests.aggregator.queries.simulated_reports import FILE, LISTS, counted, send, send_numbers
from tests.system.server import free_port
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.reader import AnswerRefused, KeyRefused, NotFound, Reader, Unreachable
from veilcount_aggregator.reader.reader import spelled


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    now = datetime(2026, 12, 5, tzinfo=UTC)
    with deployment(tmp_path_factory.mktemp("read"), now=now) as made:
        made.push(FILE, **LISTS)
        counted(send(made, "theme", [1000, 2000, 1000], period=1))
        counted(send(made, "theme", [2000, 1000, 1000], period=2, segment=2))
        counted(send(made, "plan", [100, 200, 300, 400]))
        counted(send_numbers(made, "spread", np.random.default_rng(20).random(2000)))
        yield made


@pytest.fixture(scope="module")
def url(stocked: Deployment) -> Iterator[str]:
    with listening(stocked.app.wsgi_app) as address:
        yield address


@pytest.fixture
def reader(url: str, stocked: Deployment) -> Reader:
    return Reader(url, stocked.key(Role.ANALYST))


def test_an_estimate_is_a_table(reader: Reader) -> None:
    """A row a figure, with what it protects and counts; days are dates."""
    estimate = reader.estimate("theme", by="month", from_="2026-11-01")
    frame = estimate.to_pandas()

    assert list(frame["value"]) == ["light", "dark", "system"] * 2
    assert list(frame["n"]) == [4000] * 6
    assert frame["from"].iloc[0] == pd.Timestamp("2026-11-01")
    assert set(frame["epsilon_user"]) == {"24"}
    assert (frame["low"] < frame["frequency"]).all()
    assert frame["frequency"].dtype == np.float64
    assert frame["number"].isna().all()


def test_its_arrays_are_of_the_last_time_range_of_the_newest_series(reader: Reader) -> None:
    estimate = reader.estimate("theme", by="month", level=0.99)
    last = estimate.to_pandas().tail(3)

    assert estimate.value == ["light", "dark", "system"]
    for name in ("frequency", "low", "high"):
        assert getattr(estimate, name).tolist() == last[name].tolist()
    assert (estimate.n, estimate.level, estimate.collection) == (4000, 0.99, "theme")
    assert estimate.epsilon == {"event": "2", "day": "2", "user": "24", "adjacency": "substitute"}
    assert (estimate.unit, estimate.mean) == ("month", None)
    assert estimate.estimand == "of the population that could have been asked"


def test_numbers_have_a_mean(reader: Reader) -> None:
    estimate = reader.estimate("spread")
    frame = estimate.to_pandas()

    assert estimate.mean is not None
    assert estimate.low[0] < 50 < estimate.high[0]
    assert frame["kind"].value_counts().to_dict() == {
        "curve": 257,
        "bucket": 256,
        "quantile": 7,
        "mean": 1,
    }


def test_arrow_and_pandas_hold_the_same(reader: Reader) -> None:
    estimate = reader.estimate("plan")
    table = estimate.to_arrow()

    assert table.column("value.plan").to_pylist() == ["free", "paid"] * 2
    assert table.column("frequency").to_pylist() == estimate.to_pandas()["frequency"].tolist()
    assert table.column_names == list(estimate.to_pandas().columns)


def test_values_of_python_become_parameters(reader: Reader) -> None:
    """Objects for crossed values, several words for lists (nobody sent these), exact numbers."""
    estimate = reader.estimate("plan", values=[{"answer": "dark", "plan": "paid"}])
    empty = reader.estimate("word", values=["w1", "w2"])

    assert estimate.value == [{"answer": "dark", "plan": "paid"}]
    assert (empty.value, empty.n) == (["w1", "w2"], 0)
    assert np.isnan(empty.frequency).all()
    assert empty.to_pandas()["frequency"].isna().all()
    assert spelled(argument=True) == ["true"]
    assert (spelled(None), spelled(Fraction(1, 2)), spelled(Fraction(3))) == ([], ["0.5"], ["3"])


def test_sides_are_compared(reader: Reader) -> None:
    compared = reader.compare("theme", "arm:A", "arm:B", looks="every")

    assert "differ" in compared.sentence
    assert compared.difference.shape == compared.low.shape == compared.high.shape == (3,)
    assert (compared.holm <= 1).all()
    assert list(compared.to_pandas()["a"]) == ["arm:A"] * 3
    assert set(compared.columns["looks"]) == {"every"}


def test_budgets_contrasts_plans_and_names_are_documents(reader: Reader) -> None:
    assert [each["name"] for each in reader.collections()][:2] == ["theme", "opened"]
    assert reader.budget("theme")["series"][0]["budget"]["figures"]["user"] == "24"
    assert len(reader.contrast("theme", n=1000)["series"][0]["contrast"]["lines"]) == 4
    assert reader.plan(devices=1000, epsilon=Fraction(7, 10))["epsilon"] == "0.7"


# -- what goes wrong -------------------------------------------------------------------------------


def test_a_refused_key_names_the_fix_and_is_never_printed(url: str, stocked: Deployment) -> None:
    device, analyst = stocked.key(Role.DEVICE), stocked.key(Role.ANALYST)
    for key, fix in (("nonsense", "veilcount keys create"), (device, "role analyst")):
        with pytest.raises(KeyRefused, match=fix):
            Reader(url, key).collections()

    assert analyst not in repr(Reader(url, analyst))
    assert "Bearer" not in repr(Reader(url, analyst))


def test_a_refused_query_names_the_parameter_and_the_fix(reader: Reader) -> None:
    with pytest.raises(AnswerRefused, match="one of day, week, month, all") as refused:
        reader.estimate("theme", by="year")

    assert (refused.value.field, refused.value.status) == ("by", 400)
    for name, text in (("thme", "did you mean theme"), ("../theme", "path")):
        with pytest.raises(NotFound, match=text):
            reader.estimate(name)


def test_an_address_without_an_aggregator_is_named(url: str) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable, match=nowhere):
        Reader(nowhere, "key").collections()
    with pytest.raises(Unreachable, match="is no aggregator"):
        Reader(f"{url}/docs?", "key").collections()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://stats.example.org", "in clear"),
        ("http://10.0.0.7:8420", "in clear"),
        ("stats.example.org", "give an address"),
        ("ftp://x", "give an address"),
    ],
)
def test_a_wrong_or_unencrypted_address_is_refused_at_once(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Reader(address, "key")


# -- what it needs ---------------------------------------------------------------------------------

ALONE = """
import sys
from importlib.abc import MetaPathFinder

NEEDED = {"requests", "numpy", "urllib3", "idna", "certifi", "charset_normalizer", "chardet"}
OURS = {"veilcount_aggregator", "veilcount_shared"}

class Nothing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top not in NEEDED | OURS | sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)

sys.meta_path.insert(0, Nothing())
for name in [name for name in sys.modules if name.split(".")[0] not in sys.stdlib_module_names]:
    if not name.startswith("_") and name != "__main__":
        del sys.modules[name]

from veilcount_aggregator.reader import Estimate, Reader

Reader("http://127.0.0.1:1", "key")
time_range = {"from": "2026-12-01", "to": "2026-12-31", "open_period": False, "n": 0,
    "estimand": "", "contributions": 1, "values": [], "absent": None, "mean": None, "spread": None}
series = {"fingerprint": "f", "question": "?", "unit": "day", "counts": "answers",
    "epsilon": {"event": "1", "day": "1", "user": "1"}, "time_ranges": [time_range]}
empty = Estimate({"collection": "c", "level": 0.95, "view": "raw", "simultaneous": False,
    "looks": "one", "fakes": 0.01, "series": [series]})
assert empty.frequency.shape == (0,)
for table in (empty.to_pandas, empty.to_arrow):
    try:
        table()
    except ModuleNotFoundError as missing:
        print(missing)
loaded = {name.split(".")[0] for name in sys.modules}
print(sorted(loaded & {"flask", "msgspec", "scipy", "redis", "opendp", "veilcount_shared"}))
"""


def test_it_needs_requests_and_numpy_alone() -> None:
    """With everything else out of reach; pandas and pyarrow are named when they are asked for."""
    run = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "to_pandas needs pandas: pip install pandas",
        "to_arrow needs pyarrow: pip install pyarrow",
        "[]",
    ]
