"""What a shuffler checks before it serves, and that a load changes nothing that has begun."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from veilcount_aggregator.operate.cli.main import run
from veilcount_shared.errors import DefinitionError
from veilcount_shared.oblivious_http.key_config import KeyConfig
from veilcount_shared.oblivious_http.key_file import RelayKey, encode_key_file
from veilcount_shuffler.disk import Disk
from veilcount_shuffler.errors import ShufflerError
from veilcount_shuffler.served_crowds import crowds_of
from veilcount_shuffler.setup import NewStore, init, load
from veilcount_shuffler.store_settings import StoreSettings

from .parties import RELAY_KEYS, START, definition

NEW = NewStore("https://stats.example.org", "key", "Relay & Co.")


def relay_key(number: int, start: date) -> RelayKey:
    """Return another gateway key."""
    public = X25519PrivateKey.from_private_bytes(bytes([number] * 32)).public_key()
    config = KeyConfig(number, public.public_bytes_raw())
    return RelayKey(start, config.encode(), config)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a definitions file and a file of keys."""
    write(tmp_path)
    return tmp_path


def write(folder: Path, covers: int = 142, keys: list[RelayKey] | None = None) -> None:
    """Write the files that an operator has."""
    (folder / "c.toml").write_text(definition(100, covers))
    rows = [(key.start, key.encoded) for key in keys or RELAY_KEYS]
    (folder / "relay.keys").write_text(encode_key_file(rows))


def made(folder: Path, today: date = START) -> StoreSettings:
    """Return a store that was made of the files."""
    settings = StoreSettings(folder / "store", Disk())
    init(settings, NEW, [folder / "c.toml"], folder / "relay.keys", today)
    return settings


def test_one_cover_too_few_is_refused_with_the_number_needed(folder: Path) -> None:
    """By `init` and by `load`; nothing is stored."""
    write(folder, covers=141)
    with pytest.raises(DefinitionError, match="need 142 covers"):
        made(folder)
    assert not (folder / "store").exists()
    write(folder)
    settings = made(folder)
    write(folder, covers=141)
    with pytest.raises(DefinitionError, match="need 142 covers"):
        load(settings, [folder / "c.toml"], folder / "relay.keys", START)

    assert len(settings.collections()) == 1


def test_a_store_is_made_once(folder: Path) -> None:
    settings = made(folder)
    document = json.loads((folder / "store" / "shuffler.pub").read_text())
    with pytest.raises(ShufflerError, match="use `load`"):
        made(folder)

    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(document["public"]))
    public.verify(settings.signing_key.sign(b"part"), b"part")
    assert (document["shuffler_key"], document["name"]) == (1, "Relay & Co.")
    assert all(path.stat().st_mode & 0o077 == 0 for path in (folder / "store").rglob("*"))


def test_what_travels_alone_is_not_loaded(folder: Path) -> None:
    text = (folder / "c.toml").read_text()
    alone = [line for line in text.splitlines() if not line.startswith(("batch", "model"))]
    (folder / "c.toml").write_text("\n".join(alone))
    with pytest.raises(ShufflerError, match="none of them travels by shuffler"):
        made(folder)


def test_a_load_changes_no_crowd_that_has_begun(folder: Path) -> None:
    """A key that is new, and one that is gone, count from the next period on."""
    settings = made(folder)
    before = [crowd.crowd_id for crowd in crowds_of(settings)]
    today = START + timedelta(days=10)
    second = relay_key(2, START)
    write(folder, keys=[second])
    load(settings, [folder / "c.toml"], folder / "relay.keys", today)
    after = [crowd.crowd_id for crowd in crowds_of(settings)]

    assert after[:11] == before[:11]
    assert not set(after[11:]) & set(before)
    assert len(after) == len(before)


def test_a_period_has_two_crowds_at_most(folder: Path) -> None:
    keys = [relay_key(number, START + timedelta(days=number)) for number in (1, 2, 3)]
    write(folder, keys=keys)
    crowds = list(crowds_of(made(folder)))
    serving = [[c.config.key_id for c in crowds if c.period == period] for period in range(5)]

    assert serving == [[], [1], [2, 1], [3, 2], [3, 2]]


def test_a_definition_is_added_once(folder: Path) -> None:
    settings = made(folder)
    files, keys = [folder / "c.toml"], folder / "relay.keys"
    assert load(settings, files, keys, START).added == 0
    (folder / "c.toml").write_text(definition(200))

    assert load(settings, files, keys, START).added == 1
    rules = [item.collection.batch for item in settings.collections()]
    assert [own.least for own in rules if own] == [100, 200]


# -- the command -----------------------------------------------------------------------------------


def test_the_command_makes_loads_and_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--collections", str(folder / "c.toml"), "--gateway-keys", str(folder / "relay.keys")]
    store = ["--store", str(folder / "store")]
    assert run(["shuffler", "init", *store, *files, "--to", "http://127.0.0.1:1"]) == 0
    assert "veilcount shuffler trust" in capsys.readouterr().out
    assert run(["shuffler", "load", *store, *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"added": 0, "collections": 1, "keys": 1}
    assert run(["shuffler", "status", *store]) == 0
    assert run(["shuffler", "status", *store, "--json"]) == 0
    capsys.readouterr()
    assert run(["shuffler", "doctor", *store]) == 1
    assert "no witness" in capsys.readouterr().out
    assert run(["shuffler", "doctor", *store, "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["findings"]
    findings = {row["check"]: row["state"] for row in rows}

    assert findings["covers"] == findings["permissions"] == "ok"
    assert findings["witness"] == "warn"
    assert findings["aggregator"] == "wrong"


@pytest.mark.parametrize("name", ["status", "serve"])
def test_the_command_says_that_there_is_no_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(["shuffler", name, "--store", str(tmp_path / "none")]) == 2

    assert "veilcount shuffler init" in capsys.readouterr().err
