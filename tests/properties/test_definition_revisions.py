"""A definitions file is compared with the one at a git revision; what cannot be is named."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from veilcount_client.__main__ import run as run_client
from veilcount_shared.definition_changes import FORMATS, load_change
from veilcount_shared.definition_changes.against import RevisionError
from veilcount_shared.errors import VeilcountError

from ..client.device_fixtures import definitions_text

OLD, NEW = definitions_text(a={}), definitions_text(a={}, b={})
Git = Callable[..., None]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository with the old file in a folder of it, and the new one in the working tree."""
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")

    def run(*words: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)

    run("init", "--initial-branch", "main")
    return run


@pytest.fixture
def file(git: Git, tmp_path: Path) -> Path:
    path = tmp_path / "app" / "collections.toml"
    path.parent.mkdir()
    path.write_text(OLD, encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "old")
    path.write_text(NEW, encoding="utf-8")
    return path


def test_the_file_of_a_revision_is_compared_with_that_of_the_working_tree(file: Path) -> None:
    change = load_change(file, "HEAD")

    assert change.old is not None
    assert (list(change.old), list(change.new)) == (["a"], ["a", "b"])
    assert {name: NEW.splitlines()[line - 1] for name, line in change.lines.items()} == {
        "a": "[a]", "b": "[b]",
    }  # fmt: skip


def test_a_hook_of_git_compares_the_right_folder(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Git sets the variables of the folder that it runs in: another repository must not answer."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nothing"))

    assert load_change(file, "main").old


def test_values_in_a_file_are_those_of_the_revision(git: Git, file: Path) -> None:
    listed = OLD.replace("boolean = true", 'values_file = "values.txt"')
    file.write_text(listed, encoding="utf-8")
    values = file.with_name("values.txt")
    values.write_bytes(b"x\r\ny\n")
    git("add", ".")
    git("commit", "-m", "listed")
    same = load_change(file, "HEAD")
    values.write_text("x\ny\nz\n", encoding="utf-8")
    [question] = load_change(file, "HEAD").questions()

    assert same.old == same.new
    assert question.keys == ["domain"]


def test_all_questions_of_a_file_that_did_not_exist_are_new(file: Path) -> None:
    other = file.with_name("more.toml")
    other.write_text(NEW, encoding="utf-8")

    assert [question.state for question in load_change(other, "HEAD").questions()] == ["new", "new"]


def test_another_file_is_compared_with_as_well(file: Path) -> None:
    other = file.with_name("old.toml")
    other.write_text(OLD, encoding="utf-8")

    assert load_change(file, str(other)).old == load_change(file, "HEAD").old


@pytest.mark.parametrize("format_", FORMATS)
def test_in_a_repository_without_commits_there_is_nothing_to_compare_with(
    git: Git, tmp_path: Path, capsys: pytest.CaptureFixture[str], format_: str
) -> None:
    """A hook of the first commit passes: no device has an earlier file of this repository."""
    file = tmp_path / "collections.toml"
    file.write_text(NEW, encoding="utf-8")
    words = ["check", str(file), "--against", "HEAD", "--format", format_]

    assert run_client(words) == 0
    assert "he repository has no commits: there is nothing to compare with" in (
        capsys.readouterr().out
    )
    with pytest.raises(RevisionError, match="neither a file nor a revision"):
        load_change(file, "main")
    git("add", ".")
    git("commit", "-m", "first")
    assert load_change(file, "HEAD").old


@pytest.mark.parametrize("revision", ["v9", "--since=2020", "-1", "HEAD:app", ""])
def test_a_revision_that_does_not_exist_is_named(file: Path, revision: str) -> None:
    """No word of it is an option of git."""
    with pytest.raises(RevisionError, match="neither a file nor a revision"):
        load_change(file, revision)


def test_a_file_in_no_repository_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("bare") / "collections.toml"
    file.write_text(NEW, encoding="utf-8")

    with pytest.raises(RevisionError, match=r"collections\.toml is in no git repository"):
        load_change(file, "HEAD")


def test_without_git_it_says_what_is_missing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(file.parent))

    with pytest.raises(RevisionError, match=r"git cannot be run .+: install it"):
        load_change(file, "HEAD")


def test_an_invalid_side_is_named_with_its_revision(git: Git, file: Path) -> None:
    """Of the old file, and of the new one: a line each, exit code 2."""
    file.write_text(OLD.replace("epsilon = 1", "epsilon = 99"), encoding="utf-8")
    git("commit", "--all", "-m", "invalid")
    file.write_text(NEW, encoding="utf-8")

    with pytest.raises(VeilcountError, match=r"^HEAD:collections\.toml \[a\]: epsilon = 99: "):
        load_change(file, "HEAD")
    file.write_text("app = ", encoding="utf-8")
    with pytest.raises(VeilcountError, match=r'^file = "collections\.toml": not readable TOML'):
        load_change(file, "HEAD~1")


def test_the_exit_code_says_whether_something_is_to_be_decided(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 nothing, 1 something, 2 what cannot be compared; with --exit-zero only 0 and 2."""
    name = str(file)

    assert run_client(["check", name, "--against", "HEAD"]) == 1
    assert run_client(["check", name, "--against", "HEAD", "--exit-zero"]) == 0
    assert run_client(["check", name, name, "--against", name]) == 0
    capsys.readouterr()
    assert run_client(["check", name, "--against", "v9", "--exit-zero"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run_client(["check", name, "--format", "markdown"]) == 2
    assert "give --against" in capsys.readouterr().err
