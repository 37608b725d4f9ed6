"""A store's URL: read from a file, and never shown with its password."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.settings import STORE, STORE_FILE, Settings, store_url
from veilcount_aggregator.store import open_store
from veilcount_aggregator.store.store_url import has_password, read_url_file, redact_url
from veilcount_serving.errors import SettingsError

URL = "rediss://:hunter2@store:6379/0"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://me:secret@host:1/0", "redis://me:***@host:1/0"),
        ("redis://:s%40e@host:1/0", "redis://:***@host:1/0"),
        ("redis://:se/cr?et#@@host:1/0", "redis://:***@host:1/0"),
        ("redis-cluster://:secret@a:1,b:2?tls=on", "redis-cluster://:***@a:1,b:2?tls=on"),
        ("redis://host/0?password=secret&db=1", "redis://host/0?password=***&db=1"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert redact_url(url) == shown
    assert has_password(url)


@pytest.mark.parametrize(
    "url", ["sqlite:////var/lib/x.db", "sqlite:////a:b@c.db", "redis://h:1/0", "redis://me@h:1/0"]
)
def test_a_url_without_a_password_is_shown_whole(url: str) -> None:
    assert redact_url(url) == url
    assert not has_password(url)


@pytest.mark.parametrize(
    "url", ["redis://:hunter2/x@db/0", "redi://:hunter2@db/0", "redis://:hunter2@db/0?nothing=1"]
)
def test_no_refusal_repeats_a_password(url: str) -> None:
    """Neither one that is not percent-encoded, nor that of a misspelled scheme."""
    with pytest.raises(SettingsError) as refusal:
        open_store(url)

    assert "hunter2" not in str(refusal.value)
    assert ":***@db/0" in str(refusal.value)


# -- the file --------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "url"
    path.write_text(f"{URL}\n", encoding="utf-8")
    return path


def test_the_url_is_the_one_line_of_the_file(file: Path) -> None:
    assert store_url({STORE_FILE: str(file)}) == URL
    assert Settings.from_environment({STORE_FILE: str(file)}).store == URL
    assert store_url({STORE_FILE: "", STORE: URL}) == URL
    assert store_url({}) == ""


def test_workers_get_the_url_and_not_the_file_too(file: Path) -> None:
    environ = {STORE_FILE: str(file)}
    environ |= Settings.from_environment(environ).environment()

    assert Settings.from_environment(environ).store == URL


def test_a_store_that_is_named_twice_is_refused(file: Path) -> None:
    environ = {STORE_FILE: str(file), STORE: URL}
    with pytest.raises(SettingsError, match=f"leave out this or {STORE}") as refusal:
        store_url(environ)

    assert "hunter2" not in str(refusal.value)
    assert [str(problem) for problem in Settings.environment_problems(environ)] == [
        str(refusal.value)
    ]


@pytest.mark.parametrize("lines", ["", "\n", f"{URL}\n{URL}\n", f"{URL} hunter2"])
def test_a_file_of_another_form_is_refused_without_its_content(file: Path, lines: str) -> None:
    file.write_text(lines, encoding="utf-8")
    with pytest.raises(SettingsError, match="its one line") as refusal:
        read_url_file(str(file), STORE_FILE)

    assert "hunter2" not in str(refusal.value)
    assert str(file) in str(refusal.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xff\xfe")
    for name, reason in {"gone": "No such file", ".": "Is a directory", "latin": "decode"}.items():
        with pytest.raises(SettingsError, match=rf"{STORE_FILE} = .*{reason}.*can read"):
            read_url_file(str(tmp_path / name), STORE_FILE)


def test_without_a_store_both_variables_are_named() -> None:
    with pytest.raises(SettingsError, match=f"^{STORE} = .*{STORE_FILE}"):
        Settings.from_environment({})
