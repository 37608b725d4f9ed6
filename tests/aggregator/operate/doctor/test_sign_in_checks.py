"""`veilcount doctor --sign-in`: the file, its secrets and the provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli.main import run

from ...web.dashboard.sign_in_fixtures import OPENID, PROXY, ROLES, Provider, file, served


@pytest.fixture
def provider() -> Iterator[Provider]:
    created = Provider()
    with served(created.app()) as created.issuer:
        yield created


def findings(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    capsys.readouterr()
    code = run(["doctor", "--sign-in", str(path), "--json"])
    result = json.loads(capsys.readouterr().out)

    assert code == (result["state"] == "wrong")
    return {finding["check"]: finding for finding in result["findings"]}


def test_a_file_and_its_provider_are_as_they_must_be(
    tmp_path: Path, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = findings(file(tmp_path, ROLES, OPENID.format(issuer=provider.issuer)), capsys)

    assert checks["file"]["what"] == "admin: platform; analyst: data, growth"
    assert checks["provider"]["state"] == "ok"
    assert set(findings(file(tmp_path, ROLES, PROXY), capsys)) == {"file"}  # no provider


def test_a_provider_that_is_away_or_of_another_name_is_found(
    tmp_path: Path, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    path, away = file(tmp_path, ROLES, OPENID.format(issuer=provider.issuer)), "http://127.0.0.1:9"
    provider.issuer += "/realm"
    renamed = findings(path, capsys)["provider"]
    unreachable = findings(file(tmp_path, ROLES, OPENID.format(issuer=away)), capsys)["provider"]

    assert (renamed["state"], unreachable["state"]) == ("wrong", "wrong")
    assert f"it calls itself {provider.issuer}" in renamed["what"]
    assert "openid.issuer" in unreachable["fix"]


def test_what_a_start_refuses_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path, ROLES.replace('["platform"]', '"platform"'), PROXY)
    assert findings(path, capsys)["file"]["fix"].startswith("correct the file")

    path = file(tmp_path, ROLES, PROXY)
    (tmp_path / "secret").chmod(0o644)
    assert "secret" in findings(path, capsys)["file"]["what"]
