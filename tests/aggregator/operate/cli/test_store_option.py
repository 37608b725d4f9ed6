"""`--store` and its kin: a file in place of a URL, and a warning of a password that is typed."""

from __future__ import annotations

import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli import development_stores, options
from veilcount_aggregator.operate.cli.options import VISIBLE_PASSWORD
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.records.sessions import redeem_link
from veilcount_aggregator.settings import STORE, STORE_FILE
from veilcount_aggregator.store import open_store

from .conftest import Type

SECRET = "redis://:hunter2@127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (STORE, STORE_FILE):
        monkeypatch.delenv(name, raising=False)


def file_of(folder: Path, url: str) -> Path:
    path = folder / "url"
    path.write_text(f"{url}\n", encoding="utf-8")
    return path


def test_a_store_is_named_by_a_file(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variable, after --store, and as what is copied and where to."""
    url, copy = (f"sqlite:///{tmp_path}/{name}.db" for name in ("store", "copy"))
    file = file_of(tmp_path, url)
    (tmp_path / "target").mkdir()
    target = file_of(tmp_path / "target", copy)
    assert typed("init", "--no-key", "--store", f"@{file}").code == 0
    copied = typed("store", "copy", f"@{file}", f"@{target}")
    monkeypatch.setenv(STORE_FILE, str(target))
    checked = typed("store", "check", "--json")

    assert (copied.code, copied.err) == (0, "")
    assert (checked.code, checked.json["engine"]) == (0, "sqlite")


@pytest.mark.parametrize(
    "words", [("keys", "list", "--store", SECRET), ("store", "copy", SECRET, SECRET)]
)
def test_a_password_that_is_typed_is_warned_of(typed: Type, words: tuple[str, ...]) -> None:
    done = typed(*words)

    assert f"veilcount: warning: {VISIBLE_PASSWORD}\n" in done.err
    assert "hunter2" not in done.err


def test_no_other_store_is_warned_of(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a file, nor a variable, nor a URL without a password."""
    file = file_of(tmp_path, SECRET)
    shown = [typed("keys", "list", "--store", f"@{file}").err]
    shown.append(typed("keys", "list", "--store", "redis://127.0.0.1:1/0").err)
    monkeypatch.setenv(STORE_FILE, str(file))
    shown.append(typed("keys", "list").err)
    monkeypatch.delenv(STORE_FILE)
    monkeypatch.setenv(STORE, SECRET)
    shown.append(typed("keys", "list").err)

    assert all("does not answer" in text for text in shown), shown
    assert not any("warning" in text or "hunter2" in text for text in shown)


def test_planted_a_plain_option_warns_of_nothing(
    typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: the test above for the warning would fail."""
    monkeypatch.setattr(options, "has_password", lambda _: False)

    assert "warning" not in typed("keys", "list", "--store", SECRET).err


@pytest.mark.parametrize("words", ["keys list", "doctor", "estimate theme", "store check"])
def test_without_a_store_that_of_a_development_server_is_named(
    typed: Type, temporary: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """As an option to copy, while it exists; it is not opened unasked."""
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with development_stores.temporary_store() as url:
        before = typed(*words.split())
        assert typed("init", "--no-key", "--store", url).code == 0
        during = typed(*words.split())
    after = typed(*words.split())

    assert {before.code, during.code, after.code} == {2}
    assert during.err.endswith(f"; `veilcount dev` runs with `--store {url}`\n")
    assert "veilcount dev" not in before.err + after.err


def test_a_store_of_another_user_is_not_named(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with development_stores.temporary_store() as url:
        Path(url.removeprefix("sqlite:///")).touch()
        assert url in str(development_stores.missing_store("give it"))
        monkeypatch.setattr(development_stores.os, "getuid", lambda: -1)

        assert url not in str(development_stores.missing_store("give it"))


@pytest.mark.parametrize("role", ["analyst", "admin"])
def test_a_link_logs_in_by_its_role(typed: Type, store: str, role: str) -> None:
    """One line to open, at the address that is given."""
    done = typed(
        "keys", "link", "--role", role, "--url", "https://stats.example/", "--store", store
    )
    address, _, secret = done.out.strip().partition("#")
    with closing(open_store(store)) as opened:
        redeemed = [redeem_link(opened, secret, datetime.now(UTC)) for _ in range(2)]

    assert (done.code, address) == (0, "https://stats.example/enter")
    assert redeemed == [Role(role), None]
