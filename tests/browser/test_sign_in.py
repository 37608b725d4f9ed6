"""Log-in at another site, by another implementation of a provider: what a browser lets through."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
from selenium import webdriver

from ..aggregator.web.api.deployment_fixtures import FILE, deployment
from ..processes import free_port, wait_until
from .chromium import HOST, Browser, served

SIGN_IN = """
[roles]
analyst = ["data"]

[openid]
issuer = "{issuer}"
client = "veilcount"
secret_file = "secret"
address = "http://{host}:{port}"
"""


@contextmanager
def provider(groups: list[str]) -> Iterator[str]:
    """Run one in which alice has an account; to a browser `localhost` is another site than ours."""
    port, alice = free_port(), json.dumps({"sub": "alice", "groups": groups})
    command = ("-m", "oidc_provider_mock", "--port", str(port), "--user-claims", alice)
    url = f"http://localhost:{port}"
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: answers(url))
            yield url
        finally:
            process.terminate()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=60).ok
    except requests.ConnectionError:
        return False


def test_who_logs_in_elsewhere_comes_to_the_page_that_was_wanted(
    driver: webdriver.Chrome, tmp_path: Path
) -> None:
    """No other site sends the session's cookie; so the page after the log-in goes on by itself."""
    (tmp_path / "secret").write_text("a secret of more than sixteen characters")
    (tmp_path / "secret").chmod(0o600)
    file, port = tmp_path / "sign-in.toml", free_port()
    with provider(["data"]) as issuer:
        file.write_text(SIGN_IN.format(issuer=issuer, host=HOST, port=port))
        with deployment(tmp_path, FILE, sign_in=file) as made, served(made, port) as site:
            browser = Browser(driver, site)
            browser.open("/operations?collection=theme")
            browser.find("a.main").click()
            browser.wait("return document.querySelector('button[value=alice]') !== null")
            browser.find("button[value=alice]").click()
            browser.wait("return location.pathname === '/operations'")
            browser.wait_until_ready()

            assert browser.path == "/operations?collection=theme"
            assert "analyst" in browser.text(".self")
            assert browser.run("return document.cookie") == ""
