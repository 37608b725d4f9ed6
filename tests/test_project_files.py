"""What a stranger looks for first: licence, notice, contacts, and one version everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECTS = [
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for folder in (".", "aggregator/analysis", "aggregator")
]
PROJECT = PROJECTS[0]
SISTER = re.compile(r"veilcount[\w-]*(?:\[\w+\])?==(.+)")


def test_the_licence_is_named_alike_everywhere() -> None:
    licence = PROJECT["license"]

    assert f"SPDX-License-Identifier: {licence}\n" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert f"license: {licence}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert PROJECT["license-files"] == ["LICENSE", "NOTICE"]


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")

    assert f"version: {PROJECT['version']}\n" in citation
    assert PROJECT["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_distributions_have_one_version_and_name_each_other_by_it() -> None:
    requirements = [
        requirement
        for project in PROJECTS
        for group in (project["dependencies"], *project["optional-dependencies"].values())
        for requirement in group
    ]
    pins = [SISTER.fullmatch(requirement) for requirement in requirements]

    assert {project["version"] for project in PROJECTS} == {PROJECT["version"]}
    assert {pin[1] for pin in pins if pin} == {PROJECT["version"]}
    assert [bool(pin) for pin in pins] == ["veilcount" in text for text in requirements]
    assert {project["license"] for project in PROJECTS} == {PROJECT["license"]}


@pytest.mark.parametrize("name", ["NOTICE", "SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_a_stranger_finds(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8").strip()
    assert name == "NOTICE" or f"({name})" in (ROOT / "README.md").read_text(encoding="utf-8")
