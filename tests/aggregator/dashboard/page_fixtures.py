"""A person at the pages, without a browser: keeps a cookie, reads HTML, sends forms back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from werkzeug.test import Client, TestResponse

from tests.aggregator.api.deployment_fixtures import Deployment
from veilcount_aggregator.auth import login_links
from veilcount_aggregator.auth.api_keys import Role
from veilcount_aggregator.dashboard.browser_sessions import COOKIE, FIELD

HTTPS = {"X-Forwarded-Proto": "https"}
_TOKEN = re.compile(rf'name="{FIELD}" value="([0-9a-f]+)"')


@dataclass
class Page:
    """What came back."""

    response: TestResponse

    @property
    def status(self) -> int:
        """Its status."""
        return self.response.status_code

    @property
    def html(self) -> str:
        """Its source."""
        return self.response.get_data(as_text=True)

    @property
    def text(self) -> str:
        """What is read, in one line."""
        bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", self.html, flags=re.DOTALL)
        return " ".join(unescape(bare).split())

    @property
    def leads_to(self) -> str:
        """Where it sends the browser; "" if it is a page itself."""
        return self.response.headers.get("Location", "")

    @property
    def cookie(self) -> str:
        """The cookie that is set, with its attributes; "" if none is."""
        return self.response.headers.get("Set-Cookie", "")


@dataclass
class Visitor:
    """Somebody at the pages: a stranger until they log in."""

    deployment: Deployment
    headers: dict[str, str] = field(default_factory=dict)
    token: str = ""

    def __post_init__(self) -> None:
        """Come with a browser of their own."""
        self.client: Client = self.deployment.app.test_client()

    def get(self, path: str, **given: Any) -> Page:
        """Open a page."""
        return self._seen(self.client.get(path, headers=self.headers, **given))

    def post(self, path: str, **fields: Any) -> Page:
        """Send a form of the page that was seen last."""
        given = {FIELD: self.token} | fields
        return self._seen(self.client.post(path, data=given, headers=self.headers))

    def enter(self, role: Role) -> Page:
        """Log in by a one-time link."""
        secret = login_links.create_link(
            self.deployment.aggregator.store, role, self.deployment.clocks.now
        )
        self.get(login_links.PATH)
        return self.post(login_links.PATH, link=secret)

    def log_in(self, key: str, to: str = "/") -> Page:
        """Log in with a key."""
        self.get("/login")
        return self.post("/login", key=key, to=to)

    @property
    def secret(self) -> str:
        """What the browser keeps."""
        cookie = self.client.get_cookie(COOKIE)
        return cookie.value if cookie else ""

    def _seen(self, response: TestResponse) -> Page:
        response.request.environ["wsgi.input"].close()  # a file, if what was sent is long
        page = Page(response)
        found = _TOKEN.search(page.html)
        self.token = found[1] if found else self.token
        return page
