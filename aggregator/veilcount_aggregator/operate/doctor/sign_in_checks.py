"""Checks of the file that says who may open the pages, and of the provider that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from veilcount_serving.errors import SettingsError
from veilcount_serving.findings import Check, CheckResult, Finding, Severity, examine, ok, wrong

from ...sign_in import SignIn, read_sign_in
from ...web.dashboard.open_id import OpenIdProvider, ProviderFailed

SIGN_IN = "sign-in"


def examine_sign_in(path: Path) -> Iterator[Finding]:
    """Yield the findings of a file, and of all that it names."""
    try:
        sign_in = read_sign_in(path)
    except SettingsError as error:
        what = f"{error.name}: {error.value}" if error.value else error.name
        yield Finding(SIGN_IN, "file", Severity.WRONG, what, error.fix)
    else:
        yield from examine(SIGN_IN, SIGN_IN_CHECKS, sign_in)


def _file(sign_in: SignIn) -> Iterator[CheckResult]:
    roles = sign_in.file.roles.items()
    yield ok("; ".join(f"{role}: {', '.join(groups)}" for role, groups in roles if groups))


def _provider(sign_in: SignIn) -> Iterator[CheckResult]:
    settings = sign_in.file.openid
    if settings is None:
        return
    try:
        OpenIdProvider(sign_in, settings).check()
    except ProviderFailed as failed:
        fix = "correct openid.issuer, or see that this machine reaches it"
        yield wrong(f"{settings.issuer}: {failed}", fix)
    else:
        yield ok(f"{settings.issuer} names its addresses and keys")


SIGN_IN_CHECKS: dict[str, Check[SignIn]] = {"file": _file, "provider": _provider}
