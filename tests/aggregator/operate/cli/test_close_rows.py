"""`veilcount collections close-rows`: an operator closes the rows that a person names."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.records.audit_log import load_audit_log
from veilcount_shared.report import Report
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import encode_base64

from ....redis_server import RedisServer
from ...web.api.deployment_fixtures import Deployment, deployment
from .conftest import Type, written


@pytest.fixture(params=["sqlite", "redis"])
def deployed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    """A running deployment on each engine, its rows linked over a campaign or over a day."""
    text, now = written(tmp_path).read_text(encoding="utf-8"), datetime.now(UTC)
    if request.param == "sqlite":
        with deployment(tmp_path, text, now=now) as made:
            yield made
        return
    server = RedisServer(tmp_path)
    try:
        with deployment(tmp_path, text, now=now, url=server.url) as made:
            yield made
    finally:
        server.kill()


def line(report: Report) -> str:
    return f"{report.fingerprint} {encode_base64(report.pseudonym)}\n"


def test_named_rows_are_closed_and_all_others_stay_open(
    deployed: Deployment, typed: Type, tmp_path: Path
) -> None:
    """Closed twice is closed; what was never counted, or is of no collection here, is unknown."""
    store = deployed.aggregator.settings.store
    closed, other = ([deployed.report(name) for name in ("theme", "minutes")] for _ in range(2))
    deployed.verdicts(*closed, *other)
    unknown = [deployed.report("theme"), replace(closed[0], fingerprint="0" * 64)]
    file = tmp_path / "rows.txt"
    file.write_text("\n".join(map(line, (*closed, *unknown))), encoding="utf-8")
    first = typed("collections", "close-rows", str(file), "--store", store, "--json")
    again = typed("collections", "close-rows", str(file), "--store", store)

    assert first.json == {"closed": 2, "unknown": 2}
    assert again.out.splitlines()[0] == "closed: 2"
    assert deployed.verdicts(*(replace(report, slot=1) for report in closed[1:])) == [
        Verdict.DUPLICATE
    ]
    assert deployed.verdicts(*(replace(report, slot=1) for report in other[1:])) == [
        Verdict.COUNTED
    ]
    assert deployed.counted("theme") == 2


def test_no_name_is_printed_or_logged(
    deployed: Deployment, typed: Type, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither where all goes well, nor with a line that is refused; nor in the audit log."""
    store = deployed.aggregator.settings.store
    report = deployed.report("theme")
    deployed.verdicts(report)
    file = tmp_path / "rows.txt"
    file.write_text(line(report), encoding="utf-8")
    printed = [typed("collections", "close-rows", str(file), "--store", store)]
    file.write_text(line(report) + line(report).replace(" ", " x"), encoding="utf-8")
    printed.append(typed("collections", "close-rows", str(file), "--store", store))
    texts = [text for typed_once in printed for text in (typed_once.out, typed_once.err)]
    texts += [caplog.text, repr(load_audit_log(deployed.aggregator.store))]

    assert [typed_once.code for typed_once in printed] == [0, 2]
    for word in line(report).split():
        assert not any(word in text for text in texts)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ("alone", "fields"), ("a b c", "fields"), (f"{'0' * 63} {'A' * 22}", "fingerprint"),
        (f"{'0' * 64} {'A' * 21}", "pseudonym"), (f"{'0' * 64} {'A' * 21}B", "pseudonym"),
        (f"{'0' * 64} \ufffd{'A' * 21}", "pseudonym"),
    ],
)  # fmt: skip
def test_one_wrong_line_closes_nothing_and_is_named(
    typed: Type, store: str, tmp_path: Path, wrong: str, field: str
) -> None:
    file = tmp_path / "rows.txt"
    file.write_text(f"{'0' * 64} {'A' * 22}\n\n{wrong}\n", encoding="utf-8")
    refused = typed("collections", "close-rows", str(file), "--store", store)

    assert refused.code == 2
    assert f"line 3: {field}: give the fingerprint" in refused.err
    assert wrong not in refused.err


def test_names_are_read_from_a_pipe(
    typed: Type, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = io.TextIOWrapper(io.BytesIO(f"{'0' * 64} {'A' * 22}\n".encode()))
    monkeypatch.setattr("sys.stdin", names)

    result = typed("collections", "close-rows", "-", "--store", store, "--json")

    assert result.json == {"closed": 0, "unknown": 1}
