"""Accounts: what vouches for one, and what does not."""

from __future__ import annotations

import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from veilcount_issuer import accounts
from veilcount_issuer.accounts import (
    AccountVerifier,
    SignedAccountVerifier,
    create_account_key,
    load_verifier,
    read_account_key,
    sign_account,
)
from veilcount_issuer.worker import IssuerSettings
from veilcount_serving.errors import SettingsError

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


@pytest.mark.parametrize("ed25519", [False, True])
@pytest.mark.parametrize("account", ["a", "user-17", "ü" * 128])
def test_a_signed_token_vouches_until_it_expires(
    tmp_path: Path,
    account: str,
    ed25519: bool,  # noqa: FBT001 - a case
) -> None:
    needed = create_account_key(tmp_path / "key", ed25519=ed25519)
    token = sign_account(read_account_key(tmp_path / "key"), account, LATER)
    verify = SignedAccountVerifier(read_account_key(needed))

    assert verify(token, NOW) == account
    assert verify(token, LATER) is None
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    for place in range(len(token)):
        for other in {"A", "B", ".", "é", ""} - {token[place]}:
            assert verify(token[:place] + other + token[place + 1 :], NOW) is None


def test_another_key_or_algorithm_vouches_for_nobody(tmp_path: Path) -> None:
    """Not even the public key, given as the secret of the other algorithm."""
    create_account_key(tmp_path / "a", ed25519=True)
    create_account_key(tmp_path / "b", ed25519=False)
    create_account_key(tmp_path / "c", ed25519=False)
    keys = [read_account_key(tmp_path / name) for name in "abc"]
    public = accounts.HmacAccountKey((tmp_path / "a.pub").read_bytes())
    for mine in keys:
        verify = SignedAccountVerifier(mine)
        others = [each for each in (*keys, public) if each is not mine]
        assert not any(verify(sign_account(each, "alice", LATER), NOW) for each in others)


def test_a_public_key_signs_nothing(tmp_path: Path) -> None:
    public = read_account_key(create_account_key(tmp_path / "a", ed25519=True))
    with pytest.raises(SettingsError, match="give the private key"):
        sign_account(public, "alice", LATER)
    for account in ("", "x" * 257):
        with pytest.raises(SettingsError, match="1 to 256 bytes"):
            sign_account(public, account, LATER)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"hmac-sha256 QUJD", b"hmac-sha256 !", b"-----BEGIN PUBLIC KEY-----"]
)
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(SettingsError, match="veilcount issuer account-key"):
        read_account_key(tmp_path / "key")


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    create_account_key(tmp_path / "key", ed25519=False)
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        read_account_key(tmp_path / "key")


def session_verifier() -> AccountVerifier:
    """Return a verifier as a package of the app's would offer it."""
    return lambda token, now: {"session-1": "alice"}.get(token)


def test_a_verifier_of_the_app_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = EntryPoint("acme", f"{__name__}:session_verifier", accounts.GROUP)
    found: Callable[..., EntryPoints] = lambda **wanted: EntryPoints([offered]).select(**wanted)  # noqa: E731
    monkeypatch.setattr(accounts, "entry_points", found)
    verify = load_verifier("acme")

    assert (verify("session-1", NOW), verify("session-2", NOW)) == ("alice", None)
    with pytest.raises(SettingsError, match=accounts.GROUP):
        load_verifier("other")


def test_one_of_several_keys_is_enough_and_one_kind_is_configured(tmp_path: Path) -> None:
    """So that a key is replaced while tokens of the old one are still valid."""
    names = [create_account_key(tmp_path / name, ed25519=False) for name in "abc"]
    verify = IssuerSettings("", (), account_keys=tuple(names[:2])).verifier()
    signed = [sign_account(read_account_key(each), "alice", LATER) for each in names]

    assert [verify(each, NOW) for each in signed] == ["alice", "alice", None]
    for wrong in (IssuerSettings("", ()), IssuerSettings("", (), None, tuple(names), "acme")):
        with pytest.raises(SettingsError, match="--account-verifier"):
            wrong.verifier()
