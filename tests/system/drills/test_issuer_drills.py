"""The drills of an issuer: nobody gets a token twice, whatever is replaced, lost or restored."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import requests

from veilcount_aggregator.operate.cli.main import run
from veilcount_issuer.accounts import read_account_key, sign_account
from veilcount_shared import Collection, SystemRandomSource, load_collections
from veilcount_shared.report import Batch, Report
from veilcount_shared.tokens import SlotSecret, check_key_list
from veilcount_shared.verdict import Verdict
from veilcount_shared.wire import BINARY_TYPE, decode_verdicts, encode_base64, encode_binary

from ...client.device_fixtures import definitions_text
from ...issuer.issuer_fixtures import decode
from ..server import wait_until
from .operator_host import AGGREGATOR, ISSUER, Drill, Host

TOKENS, TOKENS_2 = "/etc/veilcount/tokens.toml", "/etc/veilcount/tokens-2.toml"
DAYS = 4
ISSUED = 8  # accounts that have their token before a drill goes on
PAUSE = 0.1  # seconds between two accounts, each of which asks three times in the end


def write_definitions(file: Path, name: str = "theme", *, days_ahead: int = 2) -> None:
    """Write a campaign of some days; nothing is issued for a day that has begun."""
    start = datetime.now(UTC).date() + timedelta(days=days_ahead)
    dates = {"from": start, "until": start + timedelta(days=DAYS)}
    text = definitions_text(**{name: {"answers": 1, "linkage": "token", **dates}})
    file.write_text(text, encoding="utf-8")


@contextmanager
def issuing(folder: Path, *, days_ahead: int = 2, program: tuple[str, ...] = ()) -> Iterator[Host]:
    """Issue for a campaign on a host."""
    with Host(folder, ISSUER, flags=("--rate-limit", "0", "--workers", "2")) as host:
        definitions = host.path(TOKENS)
        account_key = host.path("/etc/veilcount/account.key")
        write_definitions(definitions, days_ahead=days_ahead)
        host.write_settings(
            VEILCOUNT_COLLECTIONS=str(definitions), VEILCOUNT_ACCOUNT_KEY=str(account_key)
        )
        host.run("veilcount issuer keys")
        host.run("veilcount issuer account-key /etc/veilcount/account.key")
        if program:
            host.service.program = program
        host.run("systemctl start veilcount-issuer")
        yield host


@dataclass
class Accounts:
    """Accounts that ask for the token of a period, one after the other, until each has it."""

    host: Host
    theme: Collection
    key_file: Path
    period: int = 0
    tokens: dict[int, bytes] = field(default_factory=dict)
    statuses: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, host: Host, file: str = TOKENS, name: str = "theme") -> Accounts:
        theme = load_collections(host.path(file))[name]
        return cls(host, theme, host.path("/etc/veilcount/account.key"))

    def slot(self, install: int) -> SlotSecret:
        secret = install.to_bytes(32, "big")
        return SlotSecret(secret, self.theme.fingerprint, self.period, 0)

    def ask(self, account: int, install: int) -> tuple[int, bytes]:
        """Ask for the token of an account's install; return the status, and the token or b""."""
        url, theme = self.host.url, self.theme
        listed = requests.get(f"{url}/v1/token-keys/{theme.fingerprint}", timeout=30).json()["keys"]
        keys = check_key_list([*map(decode, listed)], theme.periods, theme.tokens or "")
        key, slot = keys[self.period], self.slot(install)
        blinded = encode_base64(slot.blind(key).blinded)
        body = {
            "fingerprint": theme.fingerprint,
            "requests": [{"period": self.period, "blinded": blinded}],
        }
        expires = datetime.now(UTC) + timedelta(hours=1)
        bearer = sign_account(read_account_key(self.key_file), f"account-{account}", expires)
        headers = {"Authorization": f"Bearer {bearer}"}
        reply = requests.post(f"{url}/v1/tokens", json=body, headers=headers, timeout=30)
        if not reply.ok:
            return reply.status_code, b""
        (signature,) = reply.json()["signatures"]
        return reply.status_code, slot.finalize(key, decode(signature))

    def live(self, stopped: threading.Event) -> None:
        """Have one account after the other get its token; one that is refused asks again."""
        while not stopped.wait(PAUSE):
            account = len(self.tokens)
            with suppress(requests.RequestException):  # the issuer is down
                status, token = self.ask(account, account)
                self.statuses.add(status)
                if token:
                    self.tokens[account] = token

    @contextmanager
    def living(self) -> Iterator[None]:
        stopped = threading.Event()
        thread = threading.Thread(target=self.live, args=(stopped,))
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()

    def get_more(self) -> None:
        """Wait until so many more accounts have their token."""
        before = len(self.tokens)
        wait_until(lambda: len(self.tokens) >= before + ISSUED, 60)

    def second_tokens(self) -> list[int]:
        """Return the accounts that get a token for another install; a repeat gets the same one."""
        for account, token in self.tokens.items():
            assert self.ask(account, account) == (200, token)
        return [each for each in self.tokens if self.ask(each, 1000 + each)[0] == 200]


def test_an_account_key_is_replaced_and_nobody_gets_a_token_twice(tmp_path: Path) -> None:
    """Accounts go on while both keys are valid; then the old one opens nothing."""
    with issuing(tmp_path) as host:
        accounts = Accounts.of(host)
        old_key = accounts.key_file
        with Drill("Replace the issuer's account key", host) as drill, accounts.living():
            accounts.get_more()
            drill.block()
            accounts.get_more()
            accounts.key_file = host.path("/etc/veilcount/account-2.key")
            accounts.get_more()
            drill.block()
            drill.block()
            accounts.get_more()
        seconds = accounts.second_tokens()
        accounts.key_file = old_key

        assert accounts.statuses == {200}
        assert seconds == []
        assert accounts.ask(0, 0)[0] == 401


def restore_drill(folder: Path, program: tuple[str, ...] = ()) -> tuple[Accounts, list[int]]:
    """Carry out the restore; return the accounts that got a second token from the older ledger."""
    with issuing(folder, program=program) as host:
        accounts = Accounts.of(host)
        with Drill("Restore an issuer's ledger", host) as drill:
            with accounts.living():
                accounts.get_more()
                drill.block()
                accounts.get_more()
                drill.block()
                accounts.statuses.clear()
                wait_until(lambda: accounts.statuses)  # somebody has asked the older ledger
            issued = dict(accounts.tokens)
            seconds = [each for each in issued if accounts.ask(each, 1000 + each)[0] == 200]
            drill.block()
            with accounts.living():
                drill.block()
                drill.block()
                accounts.get_more()
        return accounts, seconds + accounts.second_tokens()


def test_a_restored_ledger_gives_no_account_a_second_token(tmp_path: Path) -> None:
    """While it is the older one, and after the newest was put back; nobody is left without."""
    accounts, seconds = restore_drill(tmp_path)

    assert accounts.statuses == {200, 503}
    assert seconds == []


def test_planted_an_issuer_that_trusts_an_older_ledger_gives_second_tokens(tmp_path: Path) -> None:
    _, seconds = restore_drill(tmp_path, ("tests.system.drills.trusting_issuer",))

    assert len(seconds) >= ISSUED


def verdict(host: Host, report: Report) -> Verdict:
    """Return what a server answers to a report."""
    body = encode_binary(Batch((report,)))
    url, headers = f"{host.url}/v1/reports", {"Content-Type": BINARY_TYPE}
    reply = requests.post(url, body, headers=headers, timeout=30)
    return Verdict(*decode_verdicts(reply.content, 1))


def report_of(collection: Collection, slot: SlotSecret, token: bytes) -> Report:
    return Report(
        fingerprint=collection.fingerprint,
        period=slot.period,
        segment=0,
        pseudonym=slot.pseudonym,
        slot=0,
        message=collection.pack(collection.randomize(True, SystemRandomSource())),
        token=token,
    )


def estimates(host: Host) -> list[object]:
    """Return what is estimated of each value; whether a period is open changes with a close."""
    (series,) = json.loads(host.run("veilcount estimate theme --json"))["series"]
    return [(part["n"], part["figures"]) for part in series["ranges"]]


def test_a_leaked_token_key_counts_no_more_and_what_counted_stays(tmp_path: Path) -> None:
    """The issuer's clock is a month behind, so that it issues for days that have begun."""
    early = ("tests.system.early_issuer",)
    with (
        issuing(tmp_path / "issuer", days_ahead=-2, program=early) as issuer,
        Host(tmp_path / "aggregator", AGGREGATOR, flags=("--dev",)) as aggregator,
    ):
        for shipped in (TOKENS, TOKENS_2):
            aggregator.names[shipped] = str(issuer.path(shipped))
        assert run(["init", "--store", aggregator.store, "--yes"]) == 0
        aggregator.run(f"veilcount collections push {TOKENS}")
        aggregator.run("systemctl start veilcount")
        accounts = Accounts.of(issuer)
        with accounts.living():
            accounts.get_more()
        counted = [
            verdict(aggregator, report_of(accounts.theme, accounts.slot(account), token))
            for account, token in accounts.tokens.items()
        ]
        before = estimates(aggregator)
        _, leaked = accounts.ask(900, 900)  # what whoever has the key can make of it
        with Drill("A token key has leaked", aggregator, issuer) as drill:
            drill.block()
            write_definitions(issuer.path(TOKENS_2), "theme_2", days_ahead=-2)
            drill.block(ISSUER)
            drill.block()
            forged = report_of(accounts.theme, accounts.slot(900), leaked)
            wait_until(lambda: verdict(aggregator, forged) is Verdict.CLOSED)
        again = Accounts.of(issuer, TOKENS_2, "theme_2")
        _, token = again.ask(0, 0)
        fresh = report_of(again.theme, again.slot(0), token)
        # a server learns of a new definition within a second: until then a device tries again
        wait_until(lambda: verdict(aggregator, fresh) is not Verdict.UNKNOWN_COLLECTION)

        assert counted == [Verdict.COUNTED] * len(accounts.tokens)
        assert verdict(aggregator, fresh) is Verdict.DUPLICATE, "it was counted, once"
        assert estimates(aggregator) == before
