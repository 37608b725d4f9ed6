"""The file that names who may log in, and by whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.sign_in import read_sign_in
from veilcount_serving.errors import SettingsError

from ....tree.import_graph import ROOT
from .sign_in_fixtures import OPENID, PROXY, ROLES, SECRET, file

OPERATING = ROOT / "docs" / "operating.md"
WRONG_FILES = {
    "nothing": ("", "roles"),
    "no source": (ROLES, r"give a table \[openid\] or \[proxy\]"),
    "no roles": (f"[roles]\n{PROXY}", "give the groups of a role"),
    "a device": (f'[roles]\ndevice = ["a"]\nanalyst = ["b"]\n{PROXY}', "admin and analyst only"),
    "unknown role": (f'[roles]\nboss = ["a"]\n{PROXY}', "boss"),
    "one group": (f'[roles]\nadmin = "a"\n{PROXY}', "array"),
    "apps of admins": (f'[roles]\nadmin = ["a"]\n[apps]\na = ["x"]\n{PROXY}', "admins read every"),
    "no apps": (f'[roles]\nanalyst = ["a"]\n[apps]\na = []\n{PROXY}', "name an app"),
    "in the clear": (ROLES + OPENID.format(issuer="http://id.example.org"), "https://"),
    "a misspelled key": (ROLES + '[proxy]\nsecret = "x"\n', "secret"),
    "no TOML": ("[roles", "correct the file"),
    "no secret": (ROLES + '[proxy]\nsecret_file = "missing"\n', "can be read"),
    "a short secret": (ROLES + '[proxy]\nsecret_file = "short"\n', "16 characters"),
    "a shared secret": (ROLES + '[proxy]\nsecret_file = "shared"\n', "chmod 600"),
}


@pytest.mark.parametrize(("text", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    for name, secret, mode in (("short", "x", 0o600), ("shared", SECRET, 0o644)):
        (tmp_path / name).write_text(secret)
        (tmp_path / name).chmod(mode)

    with pytest.raises(SettingsError, match=message):
        read_sign_in(file(tmp_path, text))


def test_the_documented_file_is_one(tmp_path: Path) -> None:
    """With secrets of the names that it has."""
    for name in ("openid-secret", "proxy-secret"):
        (tmp_path / name).write_text(SECRET)
        (tmp_path / name).chmod(0o600)
    text = OPERATING.read_text(encoding="utf-8").partition("<!-- file: sign-in.toml -->\n```toml")[
        2
    ]

    assert read_sign_in(file(tmp_path, text.partition("```")[0])).file.apps == {"growth": ("shop",)}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing\.toml"):
        read_sign_in(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("groups", "role", "apps"),
    [
        (["data", "platform"], Role.ADMIN, ()),
        (["growth"], Role.ANALYST, ("acme-editor",)),
        (["growth", "data"], Role.ANALYST, ()),
        (["growth", "sales"], Role.ANALYST, ("acme-editor",)),
    ],
)
def test_of_several_groups_the_one_that_may_most_counts(
    tmp_path: Path, groups: list[str], role: Role, apps: tuple[str, ...]
) -> None:
    identity = read_sign_in(file(tmp_path, ROLES, PROXY)).identity("alice", groups)

    assert (identity.role, identity.apps) == (role, apps)
