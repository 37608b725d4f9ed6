"""What one network may send through nginx: enough for a carrier's address, no more for a whole /64.

The file as it is written; addresses come from a header here, since the loopback has no others.
"""

from __future__ import annotations

import math
import re
import ssl
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from veilcount_aggregator.settings import Settings

from ..server import HOST
from .files import DEPLOY, text
from .nginx import Nginx, in_front_of
from .recording_upstream import RecordingUpstream

ADDRESSES = {"server_tokens off;": f"set_real_ip_from {HOST}; real_ip_header X-Test-Address;"}
SLOW = {"rate=10r/m": "rate=1r/m", "rate=1r/s": "rate=1r/m"}
FEW = {"burst=200": "burst=4", "burst=1000": "burst=9"}
CLASSES = {"# 192.0.2.0/24 hosting;": "192.0.2.0/24 hosting; 2001:db8:bad::/48 hosting;"}


def posted(nginx: Nginx, *addresses: str, path: str = "/v1/reports") -> list[int]:
    """Send a body from each address, on a connection of its own; return the statuses."""
    context = ssl.create_default_context(cafile=str(nginx.certificate))

    def post(address: str) -> int:
        connection = HTTPSConnection("localhost", nginx.port, context=context, timeout=30)
        connection.request("POST", path, b"body", {"X-Test-Address": address})
        status = connection.getresponse().status
        connection.close()
        return status

    with ThreadPoolExecutor(16) as devices:
        return list(devices.map(post, addresses))


def test_devices_of_one_carrier_address_are_not_limited_and_a_class_is_all_that_is_passed_on(
    echo: RecordingUpstream, tmp_path: Path
) -> None:
    """As many bodies at once as ten thousand devices send in minutes."""
    classes = {
        "198.51.100.7": "any",
        "192.0.2.7": "hosting",
        "2001:db8:bad:7::1": "hosting",
        "2001:db8::1": "any",
    }
    found = {}
    with in_front_of(tmp_path / "n", echo.server_address[1], more=ADDRESSES | CLASSES) as nginx:
        statuses = posted(nginx, *["198.51.100.7"] * 300)
        for address in classes:
            posted(nginx, address)
            found[address] = echo.headers[-1]["x-veilcount-source-class"]
            assert address not in str(echo.headers[-1])

    assert statuses == [200] * 300
    assert found == classes


def test_a_64_is_one_network_and_a_48_another(echo: RecordingUpstream, tmp_path: Path) -> None:
    """Whatever addresses of it are taken, however they are spelled; others are not concerned.

    Of a burst of 4, five pass (one is due at once), of a burst of 9, ten.
    """
    of_64 = [f"2001:db8::{n:x}" for n in range(1, 13)] + ["2001:db8::a:b:c:d"]
    of_48 = [f"2001:db8:5:{n:x}::1" for n in range(1, 26)]
    changes = ADDRESSES | SLOW | FEW
    with in_front_of(tmp_path / "n", echo.server_address[1], more=changes) as nginx:
        same, near = posted(nginx, *of_64), posted(nginx, *of_48)
        ipv4 = posted(nginx, *["198.51.100.7"] * 20)
        others = posted(nginx, "2001:db9::1", "198.51.100.8")
        written = nginx.written()

    assert Counter(same) == {200: 5, 503: 8}
    assert Counter(near) == {200: 10, 503: 15}
    assert Counter(ipv4) == {200: 10, 503: 10}
    assert others == [200, 200]
    assert "2001:db8" not in written
    assert "198.51.100" not in written


@pytest.mark.parametrize("path", ["/login", "/docs", "/openapi.json"])
def test_keyless_pages_have_a_limit(echo: RecordingUpstream, tmp_path: Path, path: str) -> None:
    few = {"rate=2r/s": "rate=1r/m", "burst=30 ": "burst=4 "}
    with in_front_of(tmp_path / "n", echo.server_address[1], more=ADDRESSES | few) as nginx:
        keyless = posted(nginx, *["198.51.100.7"] * 12, path=path)
        of_64 = posted(nginx, *[f"2001:db8::{n:x}" for n in range(1, 13)], path=path)
        pages = posted(nginx, *["198.51.100.7"] * 12, path="/collections")

    assert Counter(keyless) == {200: 5, 503: 7}
    assert Counter(of_64) == {200: 5, 503: 7}
    assert pages == [200] * 12


def test_pages_have_a_limit_too(echo: RecordingUpstream, tmp_path: Path) -> None:
    few = {"rate=50r/s": "rate=1r/m", "burst=300": "burst=9"}
    with in_front_of(tmp_path / "n", echo.server_address[1], more=ADDRESSES | few) as nginx:
        pages = posted(nginx, *["198.51.100.7"] * 25, path="/collections")
        bodies = posted(nginx, *["198.51.100.7"] * 25)

    assert Counter(pages) == {200: 10, 503: 15}
    assert bodies == [200] * 25


HOUR, MANY = 3_600, 10
SECONDS = {"s": 1, "m": 60}
OLDER = {"rate=1r/s": "rate=100r/s", "rate=10r/m": "rate=10r/s"}  # what was shipped before


def networks_to_fill_a_quota(written: str) -> int:
    """Return how many networks must send at their limit, so that new devices of an hour wait."""
    settings = Settings("sqlite:///store.db")
    found = []
    for zone in ("ipv4", "ipv6_64", "ipv6_48"):
        (rate,) = re.findall(rf"zone={zone}_bodies:10m rate=(\d+)r/([sm])", written)
        (burst,) = re.findall(rf"zone={zone}_bodies burst=(\d+)", written)
        bodies = int(rate[0]) * HOUR // SECONDS[rate[1]] + int(burst)
        pseudonyms = bodies * settings.max_pseudonyms_per_body
        found.append(math.ceil(settings.max_new_pseudonyms_per_hour / pseudonyms))
    return min(found)


def test_keeping_new_devices_out_takes_many_networks() -> None:
    """The older limits as a plant: a single network was enough."""
    shipped = planted = text("nginx.conf")
    for new, old in OLDER.items():
        planted = planted.replace(new, old)
    needed = networks_to_fill_a_quota(shipped)

    assert needed >= MANY > networks_to_fill_a_quota(planted)
    assert f"{needed} networks" in shipped
    for name in ("operating.md", "deploying.md", "threat-model.md"):
        assert f"{needed} networks" in (DEPLOY.parent / "docs" / name).read_text(), name
