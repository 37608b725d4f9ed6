"""What the reader refuses, and what it needs to run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_reader import AnswerRefused, KeyRefused, NotFound, Reader, Unreachable

from ..aggregator.web.api.deployment_fixtures import Deployment
from ..system.server import free_port


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


ALONE = """
import sys
from importlib.abc import MetaPathFinder

NEEDED = {"requests", "numpy", "urllib3", "idna", "certifi", "charset_normalizer", "chardet"}
OURS = {"veilcount_reader", "veilcount_analysis", "veilcount_shared"}

class Nothing(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top not in NEEDED | OURS | sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {top!r}", name=top)

sys.meta_path.insert(0, Nothing())
for name in [name for name in sys.modules if name.split(".")[0] not in sys.stdlib_module_names]:
    if not name.startswith("_") and name != "__main__":
        del sys.modules[name]

from veilcount_reader import Estimate, Reader

Reader("http://127.0.0.1:1", "key")
time_range = {"from": "2026-12-01", "to": "2026-12-31", "open_period": False, "n": 0,
    "first_period": 0, "last_period": 0,
    "usable": False, "estimand": "", "contributions": 1, "figures": [], "bands": ""}
series = {"fingerprint": "f", "question": "?", "unit": "day", "counts": "answers", "facts": {},
    "epsilon": {"event": "1", "day": "1", "user": "1"}, "ranges": [time_range]}
empty = Estimate({"collection": "c", "level": 0.95, "view": "raw",
    "looks": "one", "fakes": 0.01, "segments": {}, "series": [series]})
assert empty.figure.shape == (0,)
for table in (empty.to_pandas, empty.to_polars, empty.to_arrow, empty.plot):
    try:
        table()
    except ModuleNotFoundError as missing:
        print(missing)
loaded = {name.split(".")[0] for name in sys.modules}
print(sorted(loaded & {"flask", "msgspec", "scipy", "redis", "opendp"}))
"""


def test_it_needs_requests_and_numpy_alone() -> None:
    """With everything else out of reach; what is missing is named when it is asked for."""
    run = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "to_pandas needs pandas: pip install pandas",
        "to_polars needs polars: pip install polars",
        "to_arrow needs pyarrow, or arro3-core and arro3-io: pip install arro3-core arro3-io",
        "plot needs matplotlib: pip install matplotlib",
        "[]",
    ]
