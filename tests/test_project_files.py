"""What a stranger looks for first: licence, notice, contacts, and one version everywhere."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # brings no types along

from veilcount_client.__main__ import run as run_client

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


def test_hosted_runners_test_each_python_that_dev_knows() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    others = re.search(
        r"^pythons='(.+?)'", (ROOT / "dev").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert others is not None
    versions = [PROJECT["requires-python"].removeprefix(">="), *others[1].split()]

    assert jobs["all"]["strategy"]["matrix"]["python"] == versions
    assert jobs["client"]["strategy"]["matrix"]["python"] == versions
    assert jobs["minimum-versions"]["steps"][1]["with"]["python-version"] == versions[0]


def test_hosted_runners_and_hooks_use_commands_of_dev() -> None:
    workflows = (ROOT / ".github" / "workflows").glob("*.yml")
    files = (*workflows, ROOT / ".pre-commit-config.yaml", ROOT / ".ci/run")
    commands = {
        name
        for path in files
        for name in re.findall(r"\./dev (\w+)", path.read_text(encoding="utf-8"))
    }

    assert commands == {"check", "quick", "release", "test"}
    assert commands <= set(re.findall(r"^(\w+)\) ", (ROOT / "dev").read_text(), re.MULTILINE))


def test_only_what_a_release_built_is_published() -> None:
    """By a job that can do nothing else, after one that runs everything; nobody holds a secret."""
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    build, publish = jobs["build"], jobs["publish"]
    used = [step["uses"].partition("@")[0] for step in publish["steps"]]
    ran = [step["run"] for step in build["steps"] if "run" in step]

    assert ran[-3:] == ["./dev check", "./dev test", "./dev release"]
    assert (publish["needs"], publish["environment"]) == ("build", "pypi")
    assert publish["permissions"] == {"id-token": "write"}
    assert used == ["actions/download-artifact", "pypa/gh-action-pypi-publish"]
    assert publish["steps"][-1]["with"] == {"attestations": True}
    assert "secrets." not in text


def test_hooks_before_a_commit_come_from_this_repository_alone() -> None:
    """So that a commit downloads and runs nothing."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))

    assert {source["repo"] for source in config["repos"]} == {"local"}
    assert {hook["language"] for source in config["repos"] for hook in source["hooks"]} == {
        "system"
    }


# -- what users copy: a hook, and a workflow for hosted runners ------------------------------------

DEFINITIONS = """
app = "a"
[b]
question = "?"
boolean = true
epsilon = 1
unit = "user"
from = 2026-01-01
until = 2026-12-01
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose last commit, still to be checked, asks more than the one before."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    file = tmp_path / "collections.toml"

    def git(*words: str) -> None:
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for epsilon in (1, 2):
        file.write_text(DEFINITIONS.replace("epsilon = 1", f"epsilon = {epsilon}"), "utf-8")
        git("add", ".")
        git("commit", "-m", f"{epsilon}")
    file.write_text(file.read_text("utf-8").replace("epsilon = 2", "epsilon = 3"), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_hook_shows_the_change_that_is_committed_and_lets_it_pass(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the environment of a hook there is the base install alone; an invalid file stops it."""
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, *words = hook["entry"].split()
    code = run_client([*words, "collections.toml"])
    shown = capsys.readouterr().out
    (repository / "collections.toml").write_text("app = ", encoding="utf-8")

    assert (program, hook["language"], hook["verbose"]) == ("veilcount", "python", True)
    assert program in PROJECT["scripts"]
    assert re.search(hook["files"], "docs/collections.toml")
    assert not re.search(hook["files"], "docs/mycollections.toml")
    assert code == 0
    assert "fix   b: spends more, epsilon 2 -> 3 per event" in shown
    assert run_client([*words, "collections.toml"]) == 2


def test_the_workflow_compares_with_the_branch_that_it_would_change(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands run as written; what a title or branch is called is in no command."""
    text = (ROOT / "docs" / "definitions-review.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["jobs"]["review"]
    lines = [step["run"] for step in job["steps"] if "run" in step]
    checks = [line.partition(" > ")[0] for line in lines if line.startswith("veilcount ")]
    codes = []
    for line in checks:
        words = line.replace('"$FILE"', job["env"]["FILE"]).split()
        codes.append(run_client(words[1:]))
    annotated, _, summary = capsys.readouterr().out.partition("### ")

    assert not any("${{" in line for line in lines)
    assert codes == [0, 0]
    assert "::warning file=collections.toml,line=3,title=b::" in annotated
    assert "| for life | 1 | 3 |" in summary
    assert repository.exists()
