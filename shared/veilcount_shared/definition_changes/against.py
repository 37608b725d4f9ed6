"""Loading of a definitions file, and of the one to compare it with: another file, or a revision.

git is asked for plumbing alone: no pager, filter or hook of the repository runs.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import partial
from pathlib import Path

from ..collection import load_collections
from ..collection.loading import parse_text, value_lines
from ..errors import DefinitionError, VeilcountError
from .changes import Collections, FileChange

#: a hook of git sets them, of the folder that it runs in
VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
HEAD = "HEAD"
_TABLE = re.compile(r"\s*\[\s*[\"']?([\w.-]+)[\"']?\s*\]")


class RevisionError(VeilcountError, ValueError):
    """A revision that cannot be compared with, and why."""

    def __init__(self, against: str, problem: str) -> None:
        super().__init__(f"against = {against!r}: {problem}")
        self.against = against
        self.problem = problem


def load_change(file: str | os.PathLike[str], against: str | None) -> FileChange:
    """Load a file, and what it is compared with; of a revision it is the file of the same path."""
    path = Path(file)
    new = load_collections(path)
    lines = _table_lines(path.read_text(encoding="utf-8-sig"))
    old = None if against is None else _load_old(path, against)
    return FileChange(new, old, path.as_posix(), against or "", lines)


def _load_old(path: Path, against: str) -> Collections | None:
    return load_collections(against) if Path(against).is_file() else _of_revision(path, against)


def _table_lines(text: str) -> dict[str, int]:
    """Return the line of each table of a TOML file, counted from 1."""
    matches = ((_TABLE.match(line), number) for number, line in enumerate(text.splitlines(), 1))
    return {match[1]: number for match, number in matches if match}


def _of_revision(path: Path, revision: str) -> Collections | None:
    """Return the definitions of a revision; none if the file did not exist then: all are new.

    None: it is the HEAD of a repository without commits, so nothing was shipped from it.
    """
    folder, unlisted = path.absolute().parent, "its files cannot be listed"
    _git(folder, revision, f"{path.name} is in no git repository", "rev-parse", "--git-dir")
    if revision == HEAD and not _git(folder, revision, unlisted, "rev-list", "--all", "-n", "1"):
        return None
    commit = _git(
        folder,
        revision,
        "neither a file nor a revision of this repository: check its name, or fetch it",
        *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
    )
    commit_id = commit.decode().strip()
    listed = ("ls-tree", commit_id, "--", path.name)
    if not _git(folder, revision, unlisted, *listed):
        return {}
    read = partial(_blob, folder, revision, commit_id)
    name = f"{revision}:{path.name}"
    return parse_text(read(path.name), lambda values: value_lines(read(values).splitlines()), name)


def _blob(folder: Path, revision: str, commit_id: str, name: str) -> str:
    """Return a file of a commit, by its path from a folder of the working tree."""
    problem = f"has no file {name}"
    content = _git(folder, revision, problem, "cat-file", "blob", f"{commit_id}:./{name}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeError as error:
        raise DefinitionError("file", name, "not UTF-8 text", file=revision) from error


def _git(folder: Path, revision: str, problem: str, *words: str) -> bytes:
    """Return what a command of git prints; raise the problem if it fails."""
    environment = {name: text for name, text in os.environ.items() if name not in VARIABLES}
    command = ["git", "-C", str(folder), *words]
    try:
        process = subprocess.run(  # noqa: S603 - words, without a shell
            command, capture_output=True, env=environment, check=False
        )
    except OSError as error:
        missing = f"git cannot be run ({error.strerror}): install it"
        raise RevisionError(revision, missing) from error
    if process.returncode:
        lines = process.stderr.decode(errors="replace").splitlines()[:1]
        raise RevisionError(revision, "".join([problem, *(f" (git: {line})" for line in lines)]))
    return process.stdout
