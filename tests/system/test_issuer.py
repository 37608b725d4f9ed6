"""A real `veilcount issuer serve`: devices get their tokens through kills, races and restarts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import requests

from veilcount_aggregator.operate.cli.main import run
from veilcount_aggregator.store import open_store
from veilcount_issuer.accounts import read_account_key, sign_account
from veilcount_issuer.issued_numbers import encode_numbers, verify_numbers
from veilcount_issuer.key_vault import StoreVault
from veilcount_issuer.ledger import SlotRequest
from veilcount_issuer.numbers_key import read_private_key, read_public_key
from veilcount_issuer.publication import read_lines
from veilcount_issuer.worker import IssuerSettings, opened_issuer
from veilcount_shared import Collection, load_collections
from veilcount_shared.tokens import PublicKey, SlotSecret, check_key_list
from veilcount_shared.wire import encode_base64

from ..client.device_fixtures import definitions_text
from ..issuer.issuer_fixtures import decode
from ..redis_server import RedisServer
from .deploy.nginx import in_front_of
from .server import Server, wait_until

PERIODS = 3


def campaign(start: date) -> str:
    dates = {"from": start, "until": start + timedelta(days=PERIODS)}
    return definitions_text(
        theme={"values": ["light", "dark"], "answers": 2, "linkage": "token", **dates}
    )


@dataclass
class Deployed:
    """The files of an issuer, and its store."""

    folder: Path
    store: str

    @property
    def definitions(self) -> Path:
        return self.folder / "collections.toml"

    @property
    def theme(self) -> Collection:
        return load_collections(self.definitions)["theme"]

    def bearer(self, account: str) -> dict[str, str]:
        key = read_account_key(self.folder / "account.key")
        expires = datetime.now(UTC) + timedelta(hours=1)
        return {"Authorization": f"Bearer {sign_account(key, account, expires)}"}

    def served(self, workers: int = 2) -> Server:
        """Start it; the tests of its limits ask more of it than a device does."""
        flags = ["--collections", str(self.definitions), "--workers", str(workers)]
        flags += ["--account-key", str(self.folder / "account.key"), "--rate-limit", "0"]
        program = ("veilcount_aggregator", "issuer")
        return Server(self.store, self.folder, *flags, program=program)


@dataclass
class Device:
    """Somebody who asks for the tokens of two periods."""

    deployed: Deployed
    keys: list[PublicKey]
    account: str
    secret: bytes

    def slots(self, *periods: int) -> list[SlotSecret]:
        fingerprint = self.deployed.theme.fingerprint
        return [SlotSecret(self.secret, fingerprint, each, 0) for each in periods]

    def body(self, *periods: int) -> dict[str, Any]:
        wanted = [
            {
                "period": each.period,
                "blinded": encode_base64(each.blind(self.keys[each.period]).blinded),
            }
            for each in self.slots(*periods)
        ]
        return {"fingerprint": self.deployed.theme.fingerprint, "requests": wanted}

    def ask(self, server: Server, *periods: int) -> requests.Response:
        headers = self.deployed.bearer(self.account)
        body = self.body(*periods)
        return requests.post(server.url + "/v1/tokens", json=body, headers=headers, timeout=30)

    def tokens(self, reply: requests.Response, *periods: int) -> list[bytes]:
        assert reply.status_code == 200, reply.text
        signed = map(decode, reply.json()["signatures"])
        slots = zip(self.slots(*periods), signed, strict=True)
        return [each.finalize(self.keys[each.period], raw) for each, raw in slots]


@contextmanager
def store_url(engine: str, folder: Path) -> Iterator[str]:
    if engine == "sqlite":
        yield f"sqlite:///{folder}/issuer.db"
        return
    server = RedisServer(folder)
    try:
        yield server.url
    finally:
        server.kill()


@pytest.fixture(params=["sqlite", "redis"])
def deployed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployed]:
    start = datetime.now(UTC).date() + timedelta(days=2)  # nothing is signed once it has begun
    (tmp_path / "collections.toml").write_text(campaign(start))
    with store_url(request.param, tmp_path) as url:
        found = Deployed(tmp_path, url)
        line = ["issuer", "keys", "--collections", str(found.definitions), "--store", url]
        assert run(line) == 0
        assert run(["issuer", "account-key", str(tmp_path / "account.key")]) == 0
        yield found


def public_keys(deployed: Deployed, server: Server) -> list[PublicKey]:
    theme = deployed.theme
    reply = server.ask("GET", f"/v1/token-keys/{theme.fingerprint}")
    return check_key_list([*map(decode, reply.json()["keys"])], PERIODS, theme.tokens or "")


def device(deployed: Deployed, keys: list[PublicKey], number: int, account: str = "") -> Device:
    secret = number.to_bytes(32, "big")
    return Device(deployed, keys, account or f"account-{number}", secret)


def test_devices_that_race_get_no_more_than_their_accounts_may(deployed: Deployed) -> None:
    """Six installs of one account, three periods, two workers: two periods, one token each."""
    with deployed.served() as server:
        keys = public_keys(deployed, server)
        installs = [device(deployed, keys, number, "shared-account") for number in range(6)]
        with ThreadPoolExecutor(6) as threads:
            pairs = [(each, period) for period in range(PERIODS) for each in installs]
            replies = list(threads.map(lambda pair: pair[0].ask(server, pair[1]), pairs))
        won = [pair for pair, reply in zip(pairs, replies, strict=True) if reply.ok]

        assert {each.status_code for each in replies} == {200, 409}
        assert len({period for _, period in won}) == len(won) == 2
        for each, period in won:
            (token,) = each.tokens(each.ask(server, period), period)
            assert len(token) == 256
        assert server.ask("GET", "/health/ready").status_code == 200
        assert server.stop() == 0
        assert "shared-account" not in server.log_text()


def test_a_killed_issuer_neither_loses_a_token_nor_gives_two(deployed: Deployed) -> None:
    """Whoever asked when it was killed asks again, and gets the token; nobody gets another."""
    server = deployed.served()
    keys = public_keys(deployed, server)
    devices = [device(deployed, keys, number) for number in range(40)]
    answered: dict[int, list[bytes]] = {}

    def ask(number: int) -> None:
        if number == len(devices) // 2:
            server.kill()
        with suppress(requests.RequestException):
            reply = devices[number].ask(server, 0, 1)
            answered[number] = devices[number].tokens(reply, 0, 1)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(ask, range(len(devices))))
    assert 0 < len(answered) < len(devices)

    with deployed.served() as again:
        for number, each in enumerate(devices):
            tokens = each.tokens(each.ask(again, 0, 1), 0, 1)
            assert answered.get(number, tokens) == tokens
            reinstalled = device(deployed, keys, 1000 + number, each.account)
            assert reinstalled.ask(again, 0).status_code == 409


#: the changes of nginx.conf that docs/issuer.md names, besides the port
PROXY = {
    "^/v1/(reports$|rows/close$|ohttp-keys$)": "^/v1/(tokens$|token-keys/|issued/)",
    "        location / {\n            limit_req": "        location / {\n            deny all;\n"
    "            limit_req",
}


@pytest.fixture
def begun(deployed: Deployed) -> Deployed:
    """An issuer that went down before its campaign began: two days ago, by another clock."""
    early = datetime.now(UTC) - timedelta(days=3)
    start = early.date() + timedelta(days=1)
    deployed.definitions.write_text(campaign(start))
    line = ["issuer", "keys", "--collections", str(deployed.definitions)]
    assert run([*line, "--store", deployed.store]) == 0
    settings = IssuerSettings(
        deployed.store, (deployed.definitions,), account_keys=(deployed.folder / "account.key",)
    )
    with opened_issuer(settings, lambda: early) as issuer:
        issuer.publish()
        theme = deployed.theme
        for account, periods in (("one", (0, 1)), ("two", (0, 2))):
            requests = [SlotRequest(period, b"message") for period in periods]
            issuer._ledger.record(account, theme, requests, 0)
    return deployed


def test_an_issuer_that_comes_back_publishes_one_file_through_kills(begun: Deployed) -> None:
    """Two workers find two periods, or three after midnight, without a number."""
    path = f"/v1/issued/{begun.theme.fingerprint}"
    key = read_public_key(begun.folder / "token_keys" / "issuer.pem")
    files: list[bytes] = []
    for _ in range(3):
        server = begun.served()

        def is_published(server: Server = server) -> bool:
            return server.ask("GET", path).content.count(b"\n") >= 2

        wait_until(is_published)
        files.append(server.ask("GET", path).content)
        server.kill()

    numbers = verify_numbers(files[-1], key)
    assert [number.accounts for number in numbers][:2] == [2, 1]
    assert all(later.startswith(file) for file, later in pairwise(files))


def test_a_copy_is_exported_verified_and_compared(
    begun: Deployed, capfd: pytest.CaptureFixture[str]
) -> None:
    """A second number for a period is a proof of fraud, in a sentence and with exit code 1."""
    with begun.served() as server:
        path = f"/v1/issued/{begun.theme.fingerprint}"
        wait_until(lambda: server.ask("GET", path).content.count(b"\n") >= 2)
        downloaded = begun.folder / "downloaded"
        downloaded.write_bytes(server.ask("GET", path).content)
    exported, other = begun.folder / "exported", begun.folder / "other"
    key = ["--key", str(begun.folder / "token_keys" / "issuer.pem")]
    deployment = ["--collections", str(begun.definitions), "--store", begun.store]
    assert run(["issuer", "issued", "export", "theme", str(exported), *deployment]) == 0
    assert exported.read_bytes().startswith(downloaded.read_bytes())
    assert run(["issuer", "issued", "export", "them", str(exported), *deployment]) == 2
    other.write_bytes(exported.read_bytes().splitlines(keepends=True)[0])
    capfd.readouterr()
    assert run(["issuer", "verify", str(exported), str(other), *key]) == 0
    assert "the same numbers in all 1 of both" in capfd.readouterr().out
    with closing(open_store(begun.store)) as store:
        private = read_private_key(StoreVault(store))
    first = verify_numbers(other.read_bytes(), private.public_key())[0]
    lied = msgspec.structs.replace(first, accounts=700).sign(private)
    other.write_bytes(lied.line() + b"\n")
    assert run(["issuer", "verify", str(exported), str(other), *key]) == 1
    shown = capfd.readouterr().err
    assert "fraud: for period 0 the issuer signed 2 accounts" in shown
    assert "and 700 accounts" in shown
    assert run(["issuer", "issued", "import", str(other), *deployment]) == 2
    assert "another line for period 0 of theme" in capfd.readouterr().err
    other.write_bytes(exported.read_bytes()[:-1])
    assert run(["issuer", "verify", str(other), *key]) == 1
    assert "it has no end: get the file again" in capfd.readouterr().err


def test_a_restored_issuer_waits_for_the_published_file(
    begun: Deployed, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    exported, deployment = tmp_path / "exported", ["--collections", str(begun.definitions)]
    saved, restored = tmp_path / "backup.db", f"sqlite:///{tmp_path}/restored.db"
    assert run(["store", "backup", str(saved), "--store", begun.store]) == 0
    assert run(["store", "restore", str(saved), "--store", restored]) == 0
    with begun.served() as server:
        path = f"/v1/issued/{begun.theme.fingerprint}"
        wait_until(lambda: server.ask("GET", path).content.count(b"\n") >= 2)
        exported.write_bytes(server.ask("GET", path).content)
    capfd.readouterr()
    run(["doctor", "--issuer", str(begun.definitions), "--store", restored, "--json"])
    assert "the store was restored, and may lack published lines" in capfd.readouterr().out
    line = ["issuer", "issued", "import", str(exported), *deployment, "--store", restored]
    assert run(line) == 0
    run(["doctor", "--issuer", str(begun.definitions), "--store", restored, "--json"])

    assert "may lack published lines" not in capfd.readouterr().out
    with closing(open_store(restored)) as store:
        lines = read_lines(store, begun.theme.fingerprint)
    assert encode_numbers(lines) == exported.read_bytes()


def test_through_nginx_devices_reach_what_is_theirs(deployed: Deployed, tmp_path: Path) -> None:
    with (
        deployed.served(1) as server,
        in_front_of(tmp_path / "n", server.port, more=PROXY) as nginx,
    ):

        def ask(method: str, path: str, **options: Any) -> requests.Response:
            url, certificate = nginx.url + path, str(nginx.certificate)
            return requests.request(method, url, verify=certificate, timeout=30, **options)

        keys = public_keys(deployed, server)
        install = device(deployed, keys, 1)
        path = f"/v1/token-keys/{deployed.theme.fingerprint}"
        assert ask("GET", path).content == server.ask("GET", path).content
        assert ask("GET", f"/v1/issued/{deployed.theme.fingerprint}").content == b""
        headers = deployed.bearer(install.account)
        reply = ask("POST", "/v1/tokens", json=install.body(0, 2), headers=headers)
        assert len(install.tokens(reply, 0, 2)) == 2
        hidden = [ask("GET", path).status_code for path in ("/metrics", "/health/ready", "/")]
        assert hidden == [404, 403, 403]
        assert install.account not in nginx.written() + server.log_text()


def test_an_incomplete_issuer_does_not_start(
    deployed: Deployed, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["issuer", "serve", "--store", deployed.store, "--bind", "127.0.0.1:1"]
    definitions = ["--collections", str(deployed.definitions)]
    assert run([*line, *definitions]) == 2
    assert "give --account-key FILE" in capfd.readouterr().err
    shutil.rmtree(deployed.folder / "token_keys")
    account = ["--account-key", str(deployed.folder / "account.key")]
    monkeypatch.setattr("veilcount_serving.listen_address.ListenAddress.check", str)
    assert run([*line, *definitions, *account]) == 2

    assert "is missing: put it back" in capfd.readouterr().err


def test_doctor_finds_what_an_issuer_lacks(
    deployed: Deployed, capfd: pytest.CaptureFixture[str]
) -> None:
    def examined(*more: str) -> dict[str, str]:
        line = ["doctor", "--issuer", str(deployed.definitions), "--store", deployed.store]
        run([*line, "--json", *more])
        found = json.loads(capfd.readouterr().out)
        return {each["check"]: each["state"] for each in found["findings"]}

    capfd.readouterr()
    whole = examined()
    names = ("signer", "definitions", "keys", "secret", "ledger", "numbers")
    in_redis = {"ledger": "warn"} if deployed.store.startswith("redis") else {}  # no --keys
    assert {name: whole[name] for name in names} == dict.fromkeys(names, "ok") | in_redis
    empty = deployed.folder / "empty"
    empty.mkdir(mode=0o700)
    assert examined("--keys", str(empty))["keys"] == "wrong"
    empty.chmod(0o755)
    assert examined("--keys", str(empty))["secret"] == "wrong"
    text = deployed.definitions.read_text()
    deployed.definitions.write_text(text.partition("tokens =")[0])
    assert examined()["definitions"] == "wrong"
