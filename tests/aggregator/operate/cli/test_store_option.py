"""`--store` and its kin: a file in place of a URL, and a warning of a password that is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.operate.cli import options
from veilcount_aggregator.operate.cli.options import VISIBLE_PASSWORD
from veilcount_aggregator.settings import STORE, STORE_FILE

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
