"""Definition files of `veilcount dev`: loaded when they change, the value lists they name, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.records.definitions import DefinitionSource
from veilcount_aggregator.server.development import DefinitionWatcher
from veilcount_shared import Collection

FILE = """
app = "my-app"
[theme]
question = "Which theme is active?"
values_file = "themes.txt"
epsilon = 1
unit = "month"
from = 2026-11-01
until = 2027-11-01
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "themes.txt").write_text("light\ndark\n", encoding="utf-8")
    file = tmp_path / "collections.toml"
    file.write_text(FILE, encoding="utf-8")
    return file


def loaded(source: DefinitionSource) -> list[Collection]:
    return list(source.collections().values())


def looks(watcher: DefinitionWatcher) -> list[str]:
    return [verdict for verdict, _ in watcher.look()]


def test_a_file_is_loaded_when_it_or_a_value_list_of_it_changes(file: Path) -> None:
    watcher = DefinitionWatcher([file], loaded)
    assert looks(watcher) == []
    (file.parent / "themes.txt").write_text("light\ndark\nsystem\n", encoding="utf-8")
    assert looks(watcher) == ["definitions"]
    (file.parent / "more.txt").write_text("light\n", encoding="utf-8")
    file.write_text(FILE.replace("themes.txt", "more.txt"), encoding="utf-8")
    assert looks(watcher) == ["refused"]  # of one value
    (file.parent / "more.txt").write_text("light\ndark\n", encoding="utf-8")
    file.touch()
    assert looks(watcher) == ["definitions"]
    (file.parent / "more.txt").write_text("light\ndark\nsystem\n", encoding="utf-8")

    assert looks(watcher) == ["definitions"]
    assert looks(watcher) == []


def test_a_file_that_an_editor_replaces_is_waited_for(file: Path) -> None:
    watcher = DefinitionWatcher([file], loaded)
    file.unlink()
    assert looks(watcher) == []
    file.write_text(FILE.replace("epsilon = 1", "epsilon = 2"), encoding="utf-8")

    assert looks(watcher) == ["definitions"]
