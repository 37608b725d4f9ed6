"""What messages say to install exists: the extra, in the distribution that the command names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from packaging.requirements import Requirement

from veilcount_shared import installing
from veilcount_shared.installing import DECLARED, FOLDERS, Extra, install, requirements

from .page_parser import ROOT

EXTRAS: tuple[Extra, ...] = get_args(Extra)
SOURCES = ("client", "shared", "aggregator")
#: the one place for ours, and the one for packages of others, which an index has
PRINTERS = {
    "shared/veilcount_shared/installing.py",
    "aggregator/analysis/veilcount_reader/frames.py",
}


def project(distribution: str) -> dict[str, Any]:
    text = (ROOT / FOLDERS[distribution] / "pyproject.toml").read_text(encoding="utf-8")
    metadata: dict[str, Any] = tomllib.loads(text)["project"]
    return metadata


def undeclared(extra: Extra, *, published: bool) -> Iterator[str]:
    """Yield each requirement of a command that no `pyproject.toml` declares."""
    names = {folder: name for name, folder in FOLDERS.items()}
    for text in requirements(extra, published=published):
        place, bracket, extras = text.partition("[")
        requirement = Requirement(text if published else names[place] + bracket + extras)
        if requirement.extras - project(requirement.name).get("optional-dependencies", {}).keys():
            yield text


def literals(root: Path) -> set[str]:
    """Return the files below a root that contain a command of pip."""
    files = (path for name in SOURCES for path in (root / name).rglob("*") if path.is_file())
    return {
        str(path.relative_to(root))
        for path in files
        if path.suffix not in {".md", ".pyc"} and b"pip install" in path.read_bytes()
    }


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.parametrize("published", [False, True])
def test_each_printed_requirement_is_declared(extra: Extra, *, published: bool) -> None:
    assert list(undeclared(extra, published=published)) == []


@pytest.mark.parametrize("distribution", FOLDERS)
def test_each_folder_is_named_after_those_that_it_needs(distribution: str) -> None:
    """So that pip, which no index helps, has each of them when it resolves the next."""
    metadata = project(distribution)
    sisters = {Requirement(text).name for text in metadata["dependencies"]} & FOLDERS.keys()

    assert metadata["name"] == distribution
    assert sisters <= set(list(FOLDERS)[: list(FOLDERS).index(distribution)])


@pytest.mark.parametrize(
    ("extra", "in_a_checkout", "of_an_index"),
    [
        ("relay", "`pip install '.[relay]'` in a checkout", "`pip install 'veilcount[relay]'`"),
        (
            "aggregator",
            "`pip install . ./aggregator/analysis ./aggregator` in a checkout",
            "`pip install veilcount-aggregator`",
        ),
        (
            "central",
            "`pip install . './aggregator/analysis[central]'` in a checkout",
            "`pip install 'veilcount-analysis[central]'`",
        ),
    ],
)
def test_one_constant_switches_from_the_checkout_to_an_index(
    extra: Extra, in_a_checkout: str, of_an_index: str
) -> None:
    assert install(extra, published=False) == in_a_checkout
    assert install(extra, published=True) == of_an_index
    assert install(extra) == install(extra, published=installing.PUBLISHED)


def test_a_wrong_extra_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`relay` is declared by the client's distribution, and by no other."""
    monkeypatch.setitem(DECLARED, "relay", ("veilcount-analysis", "relay"))

    assert list(undeclared("relay", published=True)) == ["veilcount-analysis[relay]"]
    assert list(undeclared("relay", published=False)) == ["./aggregator/analysis[relay]"]


def test_no_other_module_prints_a_command_of_pip() -> None:
    assert literals(ROOT) == PRINTERS


def test_a_literal_command_is_noticed(tmp_path: Path) -> None:
    for name in SOURCES:
        (tmp_path / name).mkdir()
    (tmp_path / "client" / "session.py").write_text("FIX = 'pip install veilcount[relay]'\n")

    assert literals(tmp_path) == {"client/session.py"}
