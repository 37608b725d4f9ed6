"""The reference implementation conforms to every file of vectors, and no wrong client does."""

from __future__ import annotations

import random
import re
import tomllib
from collections import Counter

import pytest

from ..vectors.conformance.checks import CHECKS, check, files
from ..vectors.vector_files import FOLDER, read, require
from ..vectors.write import contents
from ..vectors.wrong_clients import README, Mistake, is_rejected, mistakes, planted

MISTAKES = mistakes()
SAMPLE = random.Random(7).sample(range(len(MISTAKES)), 12)
NAMES = [f"{mistake.area}: {mistake.name}" for mistake in MISTAKES]


@pytest.mark.parametrize("name", list(files()))
def test_the_reference_implementation_conforms(name: str) -> None:
    check(name)


def test_every_file_is_checked_and_named_in_the_readme() -> None:
    """But for what others read: lives of reports, and the inputs of the fuzzer."""
    names = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.json")}
    elsewhere = {"trace.json", *(name for name in names if name.startswith("bad/"))}
    readme = README.read_text(encoding="utf-8")

    assert names - elsewhere == set(files())
    assert all(f"`{name}`" in readme for name in CHECKS)


def test_the_files_are_what_their_command_writes() -> None:
    for path, content in contents().items():
        assert path.read_text(encoding="utf-8") == content, "python -m tests.vectors.write"


def test_each_file_is_short_enough_to_be_read() -> None:
    assert max((FOLDER / name).stat().st_size for name in files()) < 64_000


def test_a_difference_is_named_by_its_place() -> None:
    document = read("number.json")
    document[3][1]["M"] += 1
    with pytest.raises(AssertionError, match=r"number\.json\[3\]\[1\]\.M: 16 is pinned, not 17"):
        require(read("number.json"), document, "number.json")


# -- wrong clients ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(mistake, marks=() if place in SAMPLE else pytest.mark.full)
        for place, mistake in enumerate(MISTAKES)
    ],
    ids=NAMES,
)
def test_a_wrong_client_is_rejected(mistake: Mistake) -> None:
    with planted(mistake):
        assert any(map(is_rejected, files()))


def test_each_mistake_has_its_place() -> None:
    """Most are run with --full alone, which would be late to find that a line has changed."""
    for mistake in MISTAKES:
        with planted(mistake):
            pass


def test_a_mistake_is_taken_out_again() -> None:
    """Else the next one would be rejected for it."""
    assert not any(map(is_rejected, files()))


def test_the_readme_counts_the_mistakes_of_each_area() -> None:
    """`python -m tests.vectors.wrong_clients` writes its table."""
    rows = re.findall(r"^\| ([\w ]+) \| (\d+) \|", README.read_text(encoding="utf-8"), re.MULTILINE)

    assert dict(rows) == {
        area: str(count) for area, count in Counter(each.area for each in MISTAKES).items()
    }
    assert len(MISTAKES) >= 120
    assert len({(each.area, each.name) for each in MISTAKES}) == len(MISTAKES)
    assert tomllib.loads((FOLDER / "mistakes.toml").read_text(encoding="utf-8"))
