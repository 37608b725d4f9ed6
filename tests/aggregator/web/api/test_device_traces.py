"""What a device says of itself beside its answer is nowhere: not in a store, a log or a metric.

Marked values are sent in every header, path, query, body and name to every endpoint; then every
place that something could be left in is searched for them.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.api.routes import ENDPOINTS
from veilcount_serving import structured_logging
from veilcount_shared.report import Batch
from veilcount_shared.wire import BINARY_TYPE, JSON_TYPE, encode_binary, encode_json

from ....redis_server import RedisServer
from .deployment_fixtures import FILE, Deployment, deployment

MARK = "MaRkEdVaLuE"
HEADERS = [
    *("HTTP_USER_AGENT", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_VIA"),
    *("HTTP_REFERER", "HTTP_COOKIE", "HTTP_ACCEPT_LANGUAGE", "HTTP_HOST"),
    *("HTTP_X_REQUEST_ID", "HTTP_TRACEPARENT", "HTTP_FROM", "HTTP_DNT", "HTTP_IF_NONE_MATCH"),
    *("REMOTE_ADDR", "REMOTE_PORT", "REMOTE_USER", "REMOTE_HOST", "HTTP_X_MARKED"),
]
ADDRESS = "203.0.113.77"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """All that is logged, by anyone, while the aggregator's own log is set up."""
    stream = io.StringIO()
    root = logging.getLogger()
    handler, level = logging.StreamHandler(stream), root.level
    own = logging.getLogger(structured_logging.NAME)
    kept = own.handlers[:], own.propagate, own.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    structured_logging.configure_logging(stream, logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)
    own.handlers[:], own.propagate = kept[0], kept[1]
    own.setLevel(kept[2])


def marked(value: str = MARK) -> dict[str, Any]:
    marked = {name: f"{value}-{name}" for name in HEADERS}
    return marked | {"REMOTE_ADDR": ADDRESS, "QUERY_STRING": f"q={value}&{value}=1"}


def bodies(deployed: Deployment) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    pseudonym = MARK.encode().ljust(16, b"\xff")
    report = deployed.report("theme", pseudonym=pseudonym)
    good = Batch((report,))
    yield BINARY_TYPE, encode_binary(good), {}
    yield BINARY_TYPE, encode_binary(Batch((report,), test=True)), {}
    yield BINARY_TYPE, encode_binary(good)[:-1], {}
    yield BINARY_TYPE, MARK.encode(), {}
    yield MARK, MARK.encode(), {}
    yield BINARY_TYPE, encode_binary(good), {"HTTP_CONTENT_ENCODING": MARK}
    yield BINARY_TYPE, encode_binary(good), {"HTTP_CONTENT_ENCODING": "gzip"}
    yield JSON_TYPE, encode_json(good), {}
    yield BINARY_TYPE, encode_binary(good), {"CONTENT_LENGTH": MARK}
    whole = encode_binary(Batch((report,) * 2))
    for place in range(0, len(whole), 3):
        yield BINARY_TYPE, whole[:place] + MARK.encode(), {}


def knock_everywhere(deployed: Deployment) -> None:
    """Call every endpoint with the mark wherever it fits, with and without a key."""
    for key in ("", MARK, deployed.key(Role.ADMIN), deployed.key(Role.DEVICE)):
        for kind, body, more in bodies(deployed):
            for origin in ({}, {"HTTP_ORIGIN": MARK}):  # a page's is refused
                environ = marked() | more | origin
                deployed.ask("POST", "/v1/reports", body, key=key, kind=kind, environ=environ)
        for route in ENDPOINTS:
            path = route.path
            for name in ("{name}", "{identity}"):
                path = path.replace(name, MARK)
            row_name = {"fingerprint": MARK, "pseudonym": MARK}
            for body in (b"", *(json.dumps(each).encode() for each in ({MARK: MARK}, row_name))):
                deployed.ask(route.method, path, body, key=key, environ=marked())
        for path in (f"/{MARK}", f"/v1/{MARK}", f"/docs/{MARK}"):
            deployed.ask("GET", path, key=key, environ=marked())
            deployed.ask(MARK, path, key=key, environ=marked())


def found(haystack: bytes) -> list[str]:
    needles = [MARK, MARK.lower(), MARK.upper(), ADDRESS, MARK.encode().hex(), MARK[::-1]]
    return [needle for needle in needles if needle.encode() in haystack]


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "store"
    folder.mkdir()
    if request.param == "sqlite":
        yield folder, f"sqlite:///{folder}/store.db"
        return
    server = RedisServer(folder)
    yield folder, server.url
    server.kill()


def left(folder: Path) -> list[str]:
    """Return which marks a store keeps, beside the first twelve bytes of the pseudonym: its row."""
    files = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return found(files.replace(MARK.encode().ljust(12, b"\xff"), b""))


def test_nothing_of_a_device_is_left_anywhere(
    place: tuple[Path, str], tmp_path: Path, written: io.StringIO
) -> None:
    """Not in the store's files, not in a line of a log, not in a figure, not in an answer."""
    folder, url = place
    with deployment(tmp_path, FILE, url=url) as deployed:
        knock_everywhere(deployed)
        deployed.aggregator.flush()
        counted = deployed.counted("theme")
        key = deployed.key(Role.ADMIN)
        shown = b"".join(
            deployed.ask("GET", path, key=key).body
            for path in ("/metrics", "/v1/audit", "/v1/keys", "/v1/collections/theme")
        )

    assert found(shown) == []
    assert found(written.getvalue().encode()) == []
    assert left(folder) == []
    assert counted == 1


def test_the_search_would_find_a_mark(tmp_path: Path, written: io.StringIO) -> None:
    """An operator's label is kept, and is found: so would be a device's."""
    with deployment(tmp_path, FILE) as deployed:
        deployed.key(Role.DEVICE, MARK)
        structured_logging.log_event("marked", reason=MARK)

    assert MARK in left(tmp_path)
    assert MARK in found(written.getvalue().encode())


def test_faults_leave_no_mark_either(tmp_path: Path, written: io.StringIO) -> None:
    """An error in the middle of a request is logged by its kind and its place."""

    def fail(group: object, notes: object) -> None:
        raise RuntimeError(f"{MARK} {group} {notes}")

    with deployment(tmp_path, FILE) as deployed:
        committer = deployed.aggregator.pipeline.commit.__self__  # type: ignore[attr-defined] # a method
        committer._store = Mock(commit=fail)
        for kind, body, more in bodies(deployed):
            deployed.ask("POST", "/v1/reports", body, kind=kind, environ=marked() | more)

    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert found(written.getvalue().encode()) == []
    assert {(line["event"], line["endpoint"], line["error"]) for line in lines} == {
        ("failed", "reports", "RuntimeError")
    }
    assert all(line["location"].startswith("test_device_traces.py:") for line in lines)


# -- the log itself --------------------------------------------------------------------------------


def test_a_line_has_time_level_event_and_fields_of_a_closed_list(written: io.StringIO) -> None:
    """One JSON object; nobody adds an address by accident."""
    structured_logging.log_event("listening", bind="127.0.0.1:8420", workers=2)
    line = json.loads(written.getvalue())

    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "info", "event": "listening", "bind": "127.0.0.1:8420", "workers": 2}
    with pytest.raises(TypeError, match="address"):
        structured_logging.log_event("request", address=ADDRESS)  # type: ignore[call-arg] # what is refused


def test_a_fault_leaves_a_line_when_it_begins_and_one_when_it_is_over(written: io.StringIO) -> None:
    passed = [0.0]
    faults = structured_logging.FaultLog(lambda: passed[0])
    for moment in (0, 1, 9, 18, 27):  # never ten seconds apart
        passed[0] = float(moment)
        faults.log("store", "reports", RuntimeError("x"), reason=f"/s.db: try {moment}")
        faults.log_ended()
    faults.log("store", "reports", RuntimeError("x"), reason="/t.db: another")
    passed[0] = 37.0
    faults.log_ended()
    faults.log_ended()
    lines = [json.loads(line) for line in written.getvalue().splitlines()]

    assert [(line["event"], line["reason"], line.get("suppressed")) for line in lines] == [
        ("store", "/s.db: try 0", None),
        ("store", "/t.db: another", None),
        ("fault over", "store: /s.db", 4),
        ("fault over", "store: /t.db", 0),
    ]


def test_another_librarys_message_is_not_written() -> None:
    """The formatter takes the name of whoever spoke, and none of the words."""
    record = logging.LogRecord("redis", logging.ERROR, "x.py", 1, "sent %s", (MARK,), None)
    line = structured_logging.JsonFormatter().format(record)

    assert json.loads(line)["event"] == "redis"
    assert MARK not in line
