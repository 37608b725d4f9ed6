"""Devices are never all upgraded: what the first release sent is counted, byte by byte, for ever,
and answered as it was.

`tests/vectors/recorded` keeps what its clients sent to its aggregator, what that answered, and the
counters it had then; and the digests of all vectors of that release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.aggregator.api.deployment_fixtures import Deployment, deployment
from veilcount_shared.errors import WireError
from veilcount_shared.wire import decode_binary, encode_binary

VECTORS = Path(__file__).parents[2] / "vectors"
RECORDED = VECTORS / "recorded"
RELEASES = sorted(file.stem for file in RECORDED.glob("*.json"))

Exchange = dict[str, Any]


def recorded(release: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{release}.json").read_text(encoding="utf-8"))
    return found


def body(exchange: Exchange) -> bytes:
    """Return what was sent: hexadecimal, its padding written short."""
    runs = exchange["body"]
    pieces = [runs] if isinstance(runs, str) else [runs[0], runs[1][0] * runs[1][1]]
    return bytes.fromhex("".join(pieces))


def sent(release: str) -> Iterator[Exchange]:
    """Yield the batches that were sent and accepted."""
    for exchange in recorded(release)["exchanges"]:
        if exchange["method"] == "POST" and exchange["status"] == 200:
            yield exchange


pytestmark = pytest.mark.parametrize("release", RELEASES)


def test_no_vector_of_a_release_was_changed(release: str) -> None:
    """One that was changed pins nothing: devices that speak it as it was are still out there."""
    lines = (RECORDED / f"{release}.sha256").read_text(encoding="ascii").splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    found = {name: hashlib.sha256((VECTORS / name).read_bytes()).hexdigest() for name in listed}

    assert found == listed
    assert f"recorded/{release}.json" in listed
    assert len(listed) > 15


def test_an_older_client_is_counted_and_answered_as_ever(release: str, tmp_path: Path) -> None:
    result = recorded(release)
    with deployment(tmp_path, now=datetime.fromisoformat(result["now"])) as deployed:
        plugins = "\n".join(f"plugin {number}" for number in range(result["plugins"]))
        deployed.push(result["definitions"], plugins=plugins)
        for exchange in result["exchanges"]:
            method, path, kind = (exchange[name] for name in ("method", "path", "type"))
            reply = deployed.ask(method, path, body(exchange), kind=kind)
            expected = exchange["status"], meant(exchange["reply"])
            assert (reply.status, meant(reply.body.decode())) == expected
        counters = {name: kept(deployed, name) for name in result["counters"]}

    assert counters == result["counters"]
    assert {exchange["status"] for exchange in result["exchanges"]} == {200, 204, 400}


def meant(reply: str) -> object:
    """Return what a reply means to a device: of a problem, its name; the words may get better."""
    text = json.loads(reply or "null")
    return text["type"] if isinstance(text, dict) and "type" in text else text


def kept(deployed: Deployment, name: str) -> dict[str, dict[str, int]]:
    """Return the counters of a collection, as they were written down."""
    series, store = deployed.series(name), deployed.aggregator.store
    return {
        f"{cell.period}/{cell.segment}": {
            str(place): int(number)
            for place, number in enumerate(store.counters(series, [cell]))
            if number
        }
        for cell in sorted(store.report_counts(series))
    }


def test_what_an_older_client_spelt_is_spelt_so_still_and_no_byte_more_or_less(
    release: str,
) -> None:
    """Strictness does not wear off: a body that was altered is not taken for another."""
    for exchange in sent(release):
        whole = body(exchange)
        assert encode_binary(decode_binary(whole)) == whole
        for wrong in (whole[:-1], whole + b"\1"):
            with pytest.raises(WireError):
                decode_binary(wrong)
