"""A real Chromium at pages that this process serves, and everything that it complains about."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from werkzeug.serving import WSGIRequestHandler, make_server

from veilcount_aggregator.records import sessions
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.dashboard.browser_sessions import COOKIE

from ..aggregator.web.api.deployment_fixtures import Deployment

HOST = "127.0.0.1"
BINARY = "/usr/bin/chromium"
DRIVER = "/usr/bin/chromedriver"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--force-prefers-reduced-motion"),
)
LOGS = {"browser": "ALL", "performance": "ALL"}
WIDE = (1440, 900)
NARROW = (390, 844)
SECONDS = 60.0
LOOKS = 0.02
FITS = """
const page = document.documentElement, wide = page.scrollWidth <= page.clientWidth;
const plots = [...document.querySelectorAll('.plot[id]')];
const apart = plots.every((each) => {
  const drawn = each.querySelector('.frame').getBoundingClientRect();
  const under = each.closest('figure').querySelector('.under').getBoundingClientRect();
  return drawn.bottom <= under.top + 1 && drawn.right <= window.innerWidth;
});
return wide && apart;
"""
AUDIT = (Path(__file__).parent / "audit.js").read_text(encoding="utf-8")
#: axe-core, of Deque Systems, as a package carries it
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """
const node = ({ target, failureSummary }) => `${target.join(' ')}: ${failureSummary}`;
const message = ({ id, nodes }) => `${id}: ${nodes.map(node).join('; ')}`;
const [done] = arguments;
axe.run({ resultTypes: ['violations'] }).then(
  ({ violations }) => done(violations.map(message)), (error) => done([String(error)]));
"""
OPEN = "document.querySelectorAll('details:not(.menu)').forEach((each) => { each.open = true; })"
#: reported on the console, where every complaint is read
WATCH = """document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy violated: ' + event.violatedDirective + ' ' + event.blockedURI));"""


@dataclass
class Site:
    """The address of the pages, and the deployment behind them."""

    base: str
    deployment: Deployment

    def link(self, role: Role) -> str:
        store, now = self.deployment.aggregator.store, self.deployment.clocks.now
        return sessions.link_url(self.base, sessions.create_link(store, role, now))


class _Silent(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - werkzeug's name
        """Log nothing."""


@contextmanager
def served(made: Deployment, port: int = 0) -> Iterator[Site]:
    server = make_server(HOST, port, made.app, threaded=True, request_handler=_Silent)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Site(f"http://{HOST}:{server.server_port}", made)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def chromium(folder: Path) -> Iterator[webdriver.Chrome]:
    """Yield a new browser that fetches nothing by itself."""
    os.environ["SE_OFFLINE"] = os.environ["SE_AVOID_STATS"] = "true"
    options = webdriver.ChromeOptions()
    options.binary_location = BINARY
    for flag in (*FLAGS, f"--user-data-dir={folder}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", LOGS)
    downloads = {"download.default_directory": str(folder / "downloads")}
    options.add_experimental_option("prefs", downloads)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        yield driver
    finally:
        driver.quit()


def complaints(driver: webdriver.Chrome) -> list[str]:
    """Return what is not accessible on a page as it is now: by axe-core, and by `audit.js`."""
    driver.execute_script(AXE)
    found: list[str] = driver.execute_async_script(RUN_AXE)
    return found + list(driver.execute_script(AUDIT))


@dataclass
class Browser:
    """A browser at a site, for one test: without a session, wide and light by default."""

    driver: webdriver.Chrome
    site: Site
    expected: list[str] = field(default_factory=list)
    _heard: list[str] = field(default_factory=list)
    _urls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Forget the state of the test before."""
        self.driver.get("about:blank")
        self.command("Network.clearBrowserCookies")
        self.command("Browser.resetPermissions")
        self.command("Storage.clearDataForOrigin", origin=self.site.base, storageTypes="all")
        self.size(WIDE)
        self.theme("light")
        for log in LOGS:
            self.driver.get_log(log)  # type: ignore[no-untyped-call] # selenium's own

    # -- going about ---------------------------------------------------------------------------

    def enter(self, role: Role = Role.ANALYST) -> None:
        """Begin a session, and have its cookie."""
        made = self.site.deployment
        store = made.aggregator.store
        secret = sessions.begin_session(store, role, sessions.LINK_ACTOR, made.clocks.now)
        made.aggregator.catalog_cache.refresh()
        cookie = {"url": self.site.base, "httpOnly": True, "sameSite": "Strict"}
        self.command("Network.setCookie", name=COOKIE, value=secret, **cookie)

    def open(self, path: str) -> None:
        """Open a page, and wait until all of it is drawn."""
        self.driver.get(self.site.base + path)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        self.wait("return document.body && document.body.dataset.ready")

    def wait(self, script: str) -> None:
        self.wait_for(lambda: self.run(script))

    def wait_for(self, condition: Callable[[], object]) -> None:
        WebDriverWait(self.driver, SECONDS, LOOKS).until(lambda _: condition())

    def follow(self, element: WebElement | str) -> None:
        found = self.find(element) if isinstance(element, str) else element
        self.await_page(found.click)

    def await_page(self, act: Callable[[], object]) -> None:
        """Do what leads to another page (or to this one again), and wait until it is drawn."""
        self.run("document.body.dataset.ready = ''; document.body.dataset.left = 'yes'")
        act()
        self.wait("return document.body && !document.body.dataset.left")
        self.wait_until_ready()

    def type(self, selector: str, text: str) -> None:
        self.find(selector).clear()
        self.find(selector).send_keys(text)

    def copy(self, setting: str) -> str:
        """Copy with the clipboard granted or denied; return what the button says then."""
        for name in ("clipboard-read", "clipboard-write"):
            self.command("Browser.setPermission", permission={"name": name}, setting=setting)
        self.find("[data-copy]").click()
        self.wait("return document.querySelector('[data-copy]').textContent !== 'Copy'")
        return self.text("[data-copy]")

    # -- seeing --------------------------------------------------------------------------------

    def find(self, selector: str) -> WebElement:
        (found,) = self.all(selector)
        return found

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "main") -> str:
        return self.find(selector).text

    def texts(self, selector: str) -> list[str]:
        return [each.text for each in self.all(selector)]

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(self.site.base)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def fits(self) -> bool:
        """Whether nothing is wider than the screen, and no chart covers what follows it."""
        return bool(self.run(FITS))

    def audit(self) -> list[str]:
        """Return what is not accessible here, or does not fit, in light and wide, dark and narrow.

        All details are open, and it is dark and narrow afterwards.
        """
        self.run(OPEN)
        found = []
        for theme, size in (("light", WIDE), ("dark", NARROW)):
            self.theme(theme)
            self.size(size)
            found += [f"{theme}: {complaint}" for complaint in complaints(self.driver)]
            found += [] if self.fits() else [f"{theme}: a chart does not fit"]
        return found

    # -- how it is looked at -------------------------------------------------------------------

    def size(self, size: tuple[int, int]) -> None:
        width, height = size
        metrics = {"deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, **metrics)

    def theme(self, name: str) -> None:
        preferred = {"name": "prefers-color-scheme", "value": name}
        self.command("Emulation.setEmulatedMedia", features=[preferred])

    def command(self, name: str, /, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, parameters)

    # -- what went wrong -----------------------------------------------------------------------

    def expects(self, *words: str) -> None:
        self.expected.extend(words)

    def requested(self) -> list[str]:
        """Return every address that was requested since the test began."""
        self._listen()
        return self._urls

    def complaints(self) -> list[str]:
        """Return unexpected errors of the console, broken policies and requests to other hosts."""
        self._listen()
        bad = [each for each in self._heard if not any(word in each for word in self.expected)]
        return bad + [f"requested elsewhere: {url}" for url in self._urls if not self._is_ours(url)]

    def _listen(self) -> None:
        self._heard += [entry["message"] for entry in self._log("browser") if _is_bad(entry)]
        self._urls += _requests(self._log("performance"))

    def expect_complaint(self, words: str) -> None:
        """Wait for a complaint, and forget it."""
        self.wait_for(lambda: any(words in complaint for complaint in self.complaints()))
        self._heard.clear()
        self._urls.clear()

    def _log(self, name: str) -> Sequence[dict[str, Any]]:
        entries: Sequence[dict[str, Any]] = self.driver.get_log(name)  # type: ignore[no-untyped-call] # selenium's own
        return entries

    def _is_ours(self, url: str) -> bool:
        ours = {"about", "blob", "chrome", "data"}
        return url.startswith(f"{self.site.base}/") or urlsplit(url).scheme in ours


@contextmanager
def browsing(driver: webdriver.Chrome, site: Site) -> Iterator[Browser]:
    """Yield a browser at a site; afterwards there must be no complaint."""
    browser = Browser(driver, site)
    yield browser

    assert browser.complaints() == []


def _is_bad(entry: dict[str, Any]) -> bool:
    return "SEVERE" in entry["level"] or "security" in entry["source"]


def _requests(entries: Sequence[dict[str, Any]]) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in entries]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
