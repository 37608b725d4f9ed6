"""`veilcount deploy`, typed for real: it writes the files of `deploy/`, and loses none of yours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from veilcount_aggregator.operate.deployment_files import FILE_SETS

from ....system.deploy.files import DEPLOY
from .conftest import Type


def tracked() -> set[str]:
    """Return the files of `deploy/`, without secrets that somebody made there."""
    run = subprocess.run(
        ["git", "ls-files"], cwd=DEPLOY, capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_each_file_belongs_to_a_set() -> None:
    assert {name for file_set in FILE_SETS.values() for name in file_set.names} == tracked()


@pytest.mark.parametrize("kind", FILE_SETS)
def test_it_writes_the_tested_files_and_prints_what_to_change(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Into `deploy`, the folder that the files name in their commands."""
    monkeypatch.chdir(tmp_path)
    printed = typed("deploy", kind)
    written = contents(tmp_path / "deploy")
    heads = typed("deploy", kind, "--json").json["instructions"]

    assert written == {name: (DEPLOY / name).read_bytes() for name in FILE_SETS[kind].names}
    assert all(f"wrote deploy/{name}" in printed.out for name in written)
    assert list(heads) == list(FILE_SETS[kind].main)
    for name, lines in heads.items():
        assert lines
        assert all(f"# {line}".rstrip() in written[name].decode() for line in lines)
        assert all(line in printed.out for line in lines)


@pytest.mark.parametrize("kind", ["nginx", "relay", "kubernetes", "shuffler", "systemd"])
def test_the_head_of_a_file_says_what_is_yours_to_change(
    typed: Type, tmp_path: Path, kind: str
) -> None:
    heads = typed("deploy", kind, str(tmp_path), "--json").json["instructions"]

    assert all("To be changed" in " ".join(lines) for lines in heads.values())


def test_a_file_that_was_changed_is_left_and_nothing_is_written(
    typed: Type, tmp_path: Path
) -> None:
    """All or nothing, by name; the same files once more are no conflict."""
    (tmp_path / "compose.yml").write_text("mine", encoding="ascii")
    (tmp_path / "valkey.conf").write_bytes((DEPLOY / "valkey.conf").read_bytes())
    before = contents(tmp_path)
    refused = typed("deploy", "compose", str(tmp_path))

    assert refused.code == 2
    assert refused.err == (
        f'veilcount: FOLDER = "{tmp_path}": compose.yml would be overwritten: give another folder,'
        " or --force\n"
    )
    assert contents(tmp_path) == before
    assert typed("deploy", "compose", str(tmp_path), "--force").code == 0
    assert contents(tmp_path).keys() == set(FILE_SETS["compose"].names)
    assert (tmp_path / "compose.yml").read_bytes() == (DEPLOY / "compose.yml").read_bytes()
