"""Value lists in a file of their own, and how definition files are read from the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_shared.collection import load_collections, loading
from veilcount_shared.domain import MAX_VALUES, Choice, labels
from veilcount_shared.errors import DefinitionError

from .definition_harness import definition_file


def with_values(folder: Path, raw: bytes, name: str = "words.txt") -> Path:
    """Write a definitions file and the value list it names; return the former."""
    place = folder / name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(raw)
    definitions = folder / "collections.toml"
    definitions.write_text(definition_file(f'values_file = "{name}"'), encoding="utf-8")
    return definitions


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
@pytest.mark.parametrize("closed", [False, True], ids=["open end", "closed end"])
@pytest.mark.parametrize("line", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_a_values_file_is_one_value_a_line_however_lines_end(
    tmp_path: Path, *, begin: bytes, line: bytes, closed: bool
) -> None:
    raw = begin + line.join(["j\u00e4".encode(), b"1"]) + line * closed

    assert Choice(("j\u00e4", "1")) == load_collections(with_values(tmp_path, raw))["q"].domain


def test_a_values_file_lies_relative_to_the_definitions_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definitions = with_values(tmp_path, b"yes\nno\n", "lists/words.txt")
    monkeypatch.chdir("/")

    assert Choice(("yes", "no")) == load_collections(definitions)["q"].domain


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"yes\nn\xf6\n", "not UTF-8"),
        (b"yes\nno\nyes\n", "twice"),
        (b"yes\nno\n\n", "1 to 200 characters"),
        (b"yes \nno\n", "no space around"),
        (b"yes\nn\to\n", "control characters"),
        (b"yes\n", "at least two"),
    ],
)
def test_a_values_file_with_a_wrong_line_is_refused(tmp_path: Path, raw: bytes, why: str) -> None:
    with pytest.raises(DefinitionError, match=why) as caught:
        load_collections(with_values(tmp_path, raw))

    error = caught.value
    assert (error.key, error.collection, error.file) == ("values_file", "q", "collections.toml")


@pytest.mark.parametrize("name", ["missing.txt", ".", "", "no/such/folder.txt", r"a\u0000b"])
def test_a_values_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    definitions = tmp_path / "collections.toml"
    definitions.write_text(definition_file(f'values_file = "{name}"'), encoding="utf-8")
    with pytest.raises(DefinitionError, match="cannot be read") as caught:
        load_collections(definitions)

    assert (caught.value.key, caught.value.collection) == ("values_file", "q")


def test_a_huge_values_file_is_refused_without_being_read_to_its_end(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 stand behind the first line too many, and are never met."""
    definitions = with_values(tmp_path, b"x\n" * (MAX_VALUES + 100_000) + b"\xff" * 10_000_000)
    with pytest.raises(DefinitionError, match="at most 1,000,000") as caught:
        load_collections(definitions)

    assert caught.value.key == "values_file"


def test_values_up_to_the_limit_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (labels, loading):
        monkeypatch.setattr(module, "MAX_VALUES", 100)
    lines = "\n".join(map(str, range(100)))

    assert load_collections(with_values(tmp_path, lines.encode()))["q"].domain.size == 100
    with pytest.raises(DefinitionError, match="are possible"):
        load_collections(with_values(tmp_path, f"{lines}\n100".encode()))


def test_a_definitions_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    definitions = with_values(tmp_path, b"\xef\xbb\xbfyes\nno\n")
    plain = load_collections(definitions)
    definitions.write_bytes(b"\xef\xbb\xbf" + definitions.read_bytes())

    assert load_collections(definitions) == plain


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (None, r"collections\.toml.*cannot be read"),
        (b"\xff\xfe", r"collections\.toml.*: not UTF-8 text: save it as UTF-8"),
    ],
)
def test_a_definitions_file_that_cannot_be_read_is_refused(
    tmp_path: Path, raw: bytes | None, why: str
) -> None:
    definitions = tmp_path / "collections.toml"
    if raw is not None:
        definitions.write_bytes(raw)
    with pytest.raises(DefinitionError, match=why):
        load_collections(definitions)
