"""The first five minutes of README.md, for real: its commands, its app, its report on the page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import pytest
import requests

from veilcount_shared import load_collections

from ..client.device_fixtures import definitions_text
from ..docs.page_parser import ROOT, Block, steps
from .server import ENDING_SECONDS, HOST, free_port, wait_until

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [step for step in steps(PAGE) if isinstance(step, Block)]
COMMANDS = [line.partition("#")[0].split() for line in BLOCKS[0].text.splitlines()]
APP = next(block.text for block in BLOCKS if block.language == "python")
ADDRESS = "http://127.0.0.1:8420"
TOKEN = re.compile(r'name="form_token" value="([0-9a-f]+)"')
#: what varies in a line: the time, the pseudonym and the value that was drawn
DRAWN = re.compile(r"\d\d:\d\d:\d\d|[\w-]{6}\.\.\.|(?<=randomized: )(light|dark|system)")
SHOWN = next(line.strip() for line in PAGE.splitlines() if "randomized: " in line)
#: what the page of the question finds, by the simulated devices
FINDING = re.findall(r"\*(\d+ to \d+ of 100 answers are light)\*", PAGE)[0]


@dataclass
class FirstMinutes:
    """A folder, and in it `veilcount dev`, which prints to a file."""

    folder: Path
    url: str
    environ: dict[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def printed(self) -> list[str]:
        return (self.folder / "printed").read_text(encoding="utf-8").splitlines()

    def run(self, *words: str, python: tuple[str, ...] = ()) -> None:
        """Run a command line; `python` are modules and options that come before."""
        assert words[0] == "veilcount"
        program = python or ("-m", "veilcount_aggregator")
        command = [sys.executable, *program, *words[1:]]
        with (self.folder / "printed").open("wb") as printed:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=self.environ, stdout=printed, start_new_session=True
            )

    def run_app(self) -> None:
        script = APP.replace(ADDRESS, self.url)
        subprocess.run(
            [sys.executable, "-c", script], cwd=self.folder, env=self.environ, check=True
        )

    def edit(self, old: str, new: str) -> None:
        file = self.folder / "collections.toml"
        text = file.read_text(encoding="utf-8")

        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    def await_line(self, *parts: str) -> str:
        def lines() -> list[str]:
            return [line for line in self.printed if all(part in line for part in parts)]

        wait_until(lambda: bool(lines()))
        return lines()[-1]

    @cached_property
    def browser(self) -> requests.Session:
        """Log in by the link that was printed."""
        browser = requests.Session()
        browser.trust_env = False
        self.open_link(browser, self.link).raise_for_status()
        return browser

    @property
    def link(self) -> str:
        link = re.search(r"http\S+/enter#\S+", "\n".join(self.printed))
        assert link is not None
        return link[0]

    def open_link(self, browser: requests.Session, link: str) -> requests.Response:
        address, secret = link.split("#")
        token = TOKEN.search(browser.get(address, timeout=30).text)
        assert token is not None
        form = {"form_token": token[1], "link": secret}
        return browser.post(address, data=form, timeout=30)

    def output(self, *words: str) -> str:
        command = [sys.executable, "-m", "veilcount_aggregator", *words]
        return subprocess.check_output(command, env=self.environ, text=True)

    def page(self, path: str, words: str = "") -> str:
        """Return a page once it has these words."""
        shown = f"{self.url}{path}"
        wait_until(lambda: words in self.browser.get(shown, timeout=30).text)
        return self.browser.get(shown, timeout=30).text

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(4 * ENDING_SECONDS)  # a simulated platform is slow


@pytest.fixture
def minutes(tmp_path: Path) -> Iterator[FirstMinutes]:
    bind = f"{HOST}:{free_port()}"
    (tmp_path / "temporary").mkdir()
    own = {name: each for name, each in os.environ.items() if not name.startswith("VEILCOUNT_")}
    own |= {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path / "temporary")}
    started = FirstMinutes(tmp_path, f"http://{bind}", own | {"VEILCOUNT_BIND": bind})
    yield started
    if "browser" in vars(started):
        started.browser.close()
    if started.process is not None and started.process.poll() is None:
        os.killpg(started.process.pid, signal.SIGKILL)
        started.process.wait(ENDING_SECONDS)


def test_the_first_five_minutes(minutes: FirstMinutes) -> None:
    install, new, develop = COMMANDS
    assert install[:2] == ["pip", "install"]
    minutes.run(*new)
    assert minutes.process is not None
    assert minutes.process.wait(ENDING_SECONDS) == 0
    minutes.run(*develop)
    minutes.await_line("live view")
    assert "DEVELOPMENT" in minutes.printed[0]
    minutes.await_line("definitions", "collections.toml: theme")

    minutes.await_line("simulated", "10,000 reports of 10,000 simulated devices counted")
    minutes.run_app()
    line = minutes.await_line("  counted  ")
    assert DRAWN.sub("~", line) == DRAWN.sub("~", SHOWN)
    shown = minutes.page("/collections/theme", "10,001")
    assert re.search(re.sub(r"\d+", r"\\d+", FINDING), shown), FINDING
    assert "what it counts are tests and simulated devices" in shown

    minutes.edit("epsilon  = 1", "epsilon  = 2")
    fingerprint = load_collections(minutes.folder / "collections.toml")["theme"].fingerprint[:12]
    minutes.await_line("loaded", f"theme ({fingerprint})")
    minutes.edit('"month"', '"fortnight"')
    minutes.await_line("not loaded, what was loaded before stays in force", "unit")
    minutes.edit('"fortnight"', '"month"')
    minutes.run_app()
    wait_until(lambda: sum("  counted  " in each for each in minutes.printed) == 2)

    page = minutes.page("/live")
    assert "Development server" in page
    for line in minutes.printed:
        if "randomized" in line:
            assert all(f">{word}<" in page for word in re.split(r"\s{2,}", line))
    assert len(re.findall("not loaded", page)) == 1
    assert requests.get(f"{minutes.url}/live", timeout=30, allow_redirects=False).status_code == 303
    assert minutes.stop() == 0
    assert list((minutes.folder / "temporary").iterdir()) == []


def test_a_used_link_says_which_command_makes_another(minutes: FirstMinutes) -> None:
    """It names the store, although it is temporary."""
    minutes.output("new", str(minutes.folder / "collections.toml"))
    minutes.run("veilcount", "dev")
    store = minutes.await_line("store  ", "removed at the end").split()[1]
    minutes.await_line("live view")
    minutes.browser.cookies.clear()
    refused = minutes.open_link(minutes.browser, minutes.link)
    command = re.search("`veilcount (.*?)`", refused.text)

    assert refused.status_code == 403
    assert command is not None
    assert command[1] == f"keys link --store {store}"
    another = minutes.output(*command[1].split(), "--url", minutes.url).strip()
    entered = minutes.open_link(minutes.browser, another)
    assert (entered.status_code, entered.url) == (200, f"{minutes.url}/")


SHUFFLED = {
    "question": "Which theme is active?",
    "values": ["light", "dark", "system"],
    "model": "shuffled",
    "epsilon": 4,
    "unit": "month",
    "batch": {"epsilon": 1, "delta": 1e-6, "least": 1000, "covers": 142},
}


def test_a_shuffler_next_to_it_hands_over_what_one_device_sends(minutes: FirstMinutes) -> None:
    first = datetime.now(UTC).date().replace(day=1)
    dates = {"from": first, "until": (first + timedelta(days=62)).replace(day=1)}
    text = definitions_text("acme-editor", dates, theme=SHUFFLED)
    (minutes.folder / "collections.toml").write_text(text, encoding="utf-8")
    port = free_port(1)
    minutes.url = f"http://{HOST}:{port}"
    minutes.run("veilcount", "dev", "--shuffler", "--bind", f"{HOST}:{port}")
    minutes.await_line("live view")
    route = minutes.await_line("Client(..., ").strip().removeprefix("Client(..., ")
    app = APP.replace("development=True", f"development=True, {route.removesuffix(')')}")
    wait_until(lambda: _answers(port + 1))
    script = app.replace(ADDRESS, minutes.url)
    assert script != app != APP
    subprocess.run(
        [sys.executable, "-c", script], cwd=minutes.folder, env=minutes.environ, check=True
    )

    assert "handed over: 1 reports" in minutes.page("/collections/theme", "handed over")
    assert minutes.stop() == 0
    assert list((minutes.folder / "temporary").iterdir()) == []
    assert not _answers(port + 1)


def _answers(port: int) -> bool:
    try:
        return requests.get(f"http://{HOST}:{port}/health/live", timeout=5).ok
    except requests.ConnectionError:
        return False
