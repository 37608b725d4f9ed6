"""Keys: made once, pinned by one line, complete or refused, deleted at the end, backed up."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest

from veilcount_aggregator.errors import StoreUnfit
from veilcount_aggregator.store import open_store
from veilcount_issuer import key_setup
from veilcount_issuer.definition_file import DefinitionFile
from veilcount_issuer.key_backup import export_keys, import_keys, is_encrypted
from veilcount_issuer.key_list_file import key_list_path
from veilcount_issuer.key_vault import FolderVault, KeyVault, StoreVault
from veilcount_issuer.period_keys import make_keys
from veilcount_serving.errors import SettingsError
from veilcount_shared import load_collections
from veilcount_shared.errors import DefinitionError, TokenError
from veilcount_shared.tokens import check_key_list

from .issuer_fixtures import FILE, NOON, TODAY, Issuance, decode, document, set_up

MINIMAL = """\
app = "acme"
[{name}]
question = "?"
boolean = true
epsilon = 1
unit = "day"
answers = 1
from = 2026-11-01
until = 2026-12-01
{linkage}
"""


@pytest.fixture(params=["folder", "store"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyVault]:
    if request.param == "folder":
        yield FolderVault(tmp_path / "vault", make=True)
        return
    url = f"sqlite:///{tmp_path}/issuer.db?durability=relaxed"
    with closing(open_store(url, make=True)) as store:
        yield StoreVault(store)


@pytest.fixture
def copied(definitions: Path, tmp_path: Path) -> Path:
    """A copy of the definitions with their keys."""
    shutil.copytree(definitions.parent, tmp_path / "copied")
    return tmp_path / "copied" / definitions.name


def test_keys_are_made_once_and_one_line_changes(definitions: Path) -> None:
    """The comments stay; run again, not a byte changes."""
    before = definitions.read_bytes()
    lines = before.decode().splitlines()
    added = [line for line in lines if line not in FILE.splitlines()]

    assert [line for line in lines if line not in added] == FILE.splitlines()
    assert [line[:10] for line in added] == ['tokens = "'] * 2
    again = set_up(definitions, FolderVault(definitions.parent / "keys"), TODAY)
    assert [(each.collection, each.made) for each in again] == [("theme", False), ("crash", False)]
    assert definitions.read_bytes() == before


def test_the_public_list_is_pinned_and_private_files_are_their_owners(definitions: Path) -> None:
    for collection in load_collections(definitions).values():
        if collection.tokens is None:
            continue
        listed = json.loads(key_list_path(definitions, collection.tokens).read_bytes())["keys"]
        check_key_list([*map(decode, listed)], collection.periods, collection.tokens)
    keys = definitions.parent / "keys"
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (keys, *keys.iterdir())}

    assert modes == {0o700, 0o600}
    others = 2  # the ledger's secret, the key of the numbers
    assert len([*keys.iterdir()]) == 4 + 2 + others


@pytest.mark.parametrize(
    "linkage",
    [
        'linkage = "token"',
        "linkage='token' # why\r",
        '  linkage   =   "token"',
        'owner = """\\\n[x] \\\nlinkage = \\\n!"""\nlinkage = "token"',
        'linkage = """token"""\nowner = """\\\nlinkage = "token" \\\n!"""',
        'linkage = """\\\ntoken"""',
    ],
)
@pytest.mark.parametrize("name", ["x", '"x"', " x "])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\ufeff"])
def test_a_definition_however_it_is_written(
    tmp_path: Path, name: str, linkage: str, ending: str
) -> None:
    """Only the key `tokens` of the table is added; the file's form, mode and name stay."""
    text = MINIMAL.format(name=name, linkage=linkage).replace("\r\n", "\n")
    text = "\ufeff" + text if ending == "\ufeff" else text.replace("\n", ending)
    path = tmp_path / "real.toml"
    path.write_bytes(text.encode())
    path.chmod(0o640)
    (tmp_path / "link.toml").symlink_to(path)
    file = DefinitionFile(tmp_path / "link.toml")
    assert [each.name for each in file.unpinned] == ["x"]
    file.pin("x", "a" * 64)
    changed = path.read_bytes().decode()

    assert load_collections(path)["x"].tokens == "a" * 64
    (added,) = set(changed.splitlines(keepends=True)) - set(text.splitlines(keepends=True))
    assert changed.replace(added, "", 1) == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "link.toml").is_symlink()


def test_a_table_that_cannot_be_changed_says_what_to_write(vault: KeyVault, tmp_path: Path) -> None:
    inline = ", ".join(MINIMAL.format(name="x", linkage='linkage = "token"').splitlines()[2:])
    path = tmp_path / "c.toml"
    path.write_text(f'app = "acme"\nx = {{{inline}}}\n')
    with pytest.raises(DefinitionError, match="add this line to its table: tokens = "):
        set_up(path, vault, TODAY)


def test_what_is_not_complete_is_refused_with_the_fix(copied: Path, tmp_path: Path) -> None:
    keys = FolderVault(copied.parent / "keys")
    empty = FolderVault(tmp_path / "empty", make=True)
    with pytest.raises(DefinitionError, match="private keys of 4 periods, from 0 on, are not in"):
        set_up(copied, empty, TODAY)
    theme = load_collections(copied)["theme"]
    path = key_list_path(copied, theme.tokens or "")
    listed = json.loads(path.read_bytes())["keys"]
    for wrong in ("{", "[]", '{"keys": [1]}', json.dumps({"keys": listed[::-1]})):
        path.write_text(wrong)
        with pytest.raises(DefinitionError, match="holds other keys: put it back"):
            set_up(copied, keys, TODAY)
    path.unlink()
    with pytest.raises(DefinitionError, match="is missing: put it back"):
        set_up(copied, keys, TODAY)
    (tmp_path / "none.toml").write_text(MINIMAL.format(name="x", linkage=""))
    with pytest.raises(DefinitionError, match='no collection has linkage = "token"'):
        set_up(tmp_path / "none.toml", keys, TODAY)


def test_a_secret_that_others_may_read_is_refused(copied: Path) -> None:
    keys = copied.parent / "keys"
    (keys / "ledger").chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        FolderVault(keys).read("ledger")
    keys.chmod(0o750)
    with pytest.raises(SettingsError, match="chmod 700"):
        FolderVault(keys)


def test_a_key_of_another_period_signs_nothing(copied: Path) -> None:
    """Its signatures would be worthless to the device, and its request spent."""
    theme, keys = load_collections(copied)["theme"], FolderVault(copied.parent / "keys")
    found = key_setup.open_keys(copied, theme, keys, TODAY)
    other = keys.read(found.name(1)) or b""
    keys.delete([found.name(0)])
    keys.add({found.name(0): other})

    with pytest.raises(StoreUnfit, match="period 0 of theme is not its own"):
        found.find(0)
    assert found.find(1) is not None


def test_keys_go_a_day_after_their_period_began(
    issuance: Issuance, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is signed under them; the ledger goes when the last period takes no more reports.

    The earliest of the clocks decides: one that is wrong deletes nothing.
    """
    found = Issuance(copied, issuance.store)
    found.tokens("alice", found.slots([0]))
    vault, theme = FolderVault(copied.parent / "keys"), found.theme
    days = [(0, 32, 4), (1, 32, 4), (32, 1, 4), (2, 32, 3), (9, 8, 3), (9, 9, 2), (33, 32, 0)]
    for ours, stores, kept in (*days, (33, 34, 0)):
        found.now = NOON + timedelta(days=ours)
        times = [NOON + timedelta(days=stores)]
        monkeypatch.setattr(found.store, "server_times", lambda times=times: times)
        assert found.store.record_keys(f"issued:{theme.fingerprint}")
        found.issuer.publish()
        found.issuer.retire()
        assert sum(name.startswith(theme.tokens or "") for name in vault.names()) == kept
    assert not found.store.record_keys(f"issued:{theme.fingerprint}")
    over = key_setup.open_keys(copied, theme, vault, date(2027, 1, 1))
    assert over.find(3) is None
    assert found.issuer._keys[theme.fingerprint].find(0) is None, "nor in memory"


@pytest.mark.parametrize("passphrase", [None, b"correct horse"])
def test_a_backup(copied: Path, vault: KeyVault, tmp_path: Path, passphrase: bytes | None) -> None:
    original = FolderVault(copied.parent / "keys")
    backup = tmp_path / "backup"
    assert export_keys(original, backup, passphrase) == 8
    assert is_encrypted(backup) is (passphrase is not None)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    secret = original.read("ledger") or b""
    if passphrase:
        assert b"ledger" not in backup.read_bytes()
        for wrong in (None, b"wrong"):
            with pytest.raises(SettingsError, match="another passphrase"):
                import_keys(vault, backup, wrong)
    with pytest.raises(SettingsError, match="it exists"):
        export_keys(original, backup, passphrase)

    assert import_keys(vault, backup, passphrase) == 8
    assert import_keys(vault, backup, passphrase) == 0
    assert vault.read("ledger") == secret
    set_up(copied, vault, TODAY)
    vault.delete(["ledger"])
    vault.add({"ledger": b"another"})
    with pytest.raises(SettingsError, match="of another issuer"):
        import_keys(vault, backup, passphrase)


def test_a_damaged_backup_is_refused(vault: KeyVault, tmp_path: Path) -> None:
    original = FolderVault(tmp_path / "original", make=True)
    original.add({"ledger": b"secret"})
    export_keys(original, tmp_path / "backup", b"correct horse")
    whole = (tmp_path / "backup").read_bytes()
    for content in (b"", b"{}", whole[:-1], whole[:40], whole[:-1] + bytes([whole[-1] ^ 1])):
        (tmp_path / "backup").write_bytes(content)
        with pytest.raises(SettingsError):
            import_keys(vault, tmp_path / "backup", b"correct horse")
    assert not vault.names()


def test_a_vault_never_writes_over(vault: KeyVault) -> None:
    vault.add({"a": b"1", "b": b"2"})
    vault.add({"a": b"9", "c": b"3"})
    vault.delete(["b", "not there"])

    assert {name: vault.read(name) for name in vault.names()} == {"a": b"1", "c": b"3"}
    assert vault.read("b") is None


def test_another_list_is_noticed_by_a_device(issuance: Issuance) -> None:
    """A key for one person alone would join their reports: planted, and found out."""
    keys = document(issuance.web.get(f"/v1/token-keys/{issuance.theme.fingerprint}"))["keys"]
    (mine,), _ = make_keys(1)
    pinned = issuance.theme.tokens or ""
    with pytest.raises(TokenError, match="not those of the definition"):
        check_key_list([mine, *map(decode, keys[1:])], 4, pinned)
