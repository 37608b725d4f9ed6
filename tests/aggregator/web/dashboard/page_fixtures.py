"""A visitor of the pages without a browser, and the pages as tests read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from typing import Any

from flask import template_rendered
from werkzeug.test import Client, TestResponse

from veilcount_aggregator.records import sessions
from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.dashboard.browser_sessions import COOKIE, FIELD
from veilcount_aggregator.web.dashboard.charts import Chart

from ..api.deployment_fixtures import Deployment

HTTPS = {"X-Forwarded-Proto": "https"}
_TOKEN = re.compile(rf'name="{FIELD}" value="([0-9a-f]+)"')


@dataclass
class Page:
    response: TestResponse
    content: Sequence[Mapping[str, Any]] = ()  # of its templates

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def html(self) -> str:
        return self.response.get_data(as_text=True)

    @property
    def text(self) -> str:
        """Its text, in one line."""
        bare = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", self.html, flags=re.DOTALL)
        return " ".join(unescape(bare).split())

    @property
    def leads_to(self) -> str:
        """Where it redirects to; "" if it is a page itself."""
        return self.response.headers.get("Location", "")

    @property
    def cookie(self) -> str:
        """The cookie that is set, with its attributes; "" if none is."""
        return self.response.headers.get("Set-Cookie", "")

    @property
    def charts(self) -> dict[str, Any]:
        """The drawings of the charts, by the charts' names."""
        return {chart.id: chart.drawing for chart in _charts(self.content) if chart.drawing}

    @property
    def dots(self) -> list[list[list[str]]]:
        """The figures that are drawn as dots: for each table its rows, each as its cells."""
        tables = re.findall(r'<table class="dots".*?</table>', self.html, re.DOTALL)
        cell = r'<th scope="row"[^>]*>(.*?)</th>|<td role="cell" class="number[^>]*>(.*?)</td>'
        return [
            [
                [unescape(head or figure) for head, figure in re.findall(cell, row)]
                for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)[1:]
            ]
            for table in tables
        ]

    def lacks(self, *patterns: str) -> list[str]:
        """Return the patterns that its text does not have."""
        return [pattern for pattern in patterns if not re.search(pattern, self.text)]

    def field(self, name: str) -> str:
        """Return the value of an input or the selected option of a choice."""
        (select,) = re.findall(
            rf'<select[^>]*name="{name}".*?</select>|<input[^>]*name="{name}"[^>]*>',
            self.html,
            re.DOTALL,
        )
        options = re.findall(r'value="([^"]*)" selected', select)
        values = options or re.findall(r'value="([^"]*)"', select)
        return str(values[0]) if values else ""

    def links(self, text: str) -> list[str]:
        found = re.findall(rf'<a [^>]*?href="([^"]*)"[^>]*>{text}</a>', self.html)
        return [unescape(each) for each in found]


def _charts(content: object) -> Iterator[Chart]:
    if isinstance(content, Chart):
        yield content
    elif isinstance(content, Mapping | list | tuple):
        parts = content.values() if isinstance(content, Mapping) else content
        for part in parts:
            yield from _charts(part)


@dataclass
class Visitor:
    """A client of the pages that keeps its cookie and sends forms back; a stranger at first."""

    deployment: Deployment
    headers: dict[str, str] = field(default_factory=dict)
    token: str = ""

    def __post_init__(self) -> None:
        self.client: Client = self.deployment.app.test_client()

    def get(self, path: str, **options: Any) -> Page:
        return self._read(partial(self.client.get, path, headers=self.headers, **options))

    def post(self, path: str, **fields: Any) -> Page:
        """Send a form of the page that was opened last."""
        data = {FIELD: self.token} | fields
        return self._read(partial(self.client.post, path, data=data, headers=self.headers))

    def enter(self, role: Role) -> Page:
        secret = sessions.create_link(
            self.deployment.aggregator.store, role, self.deployment.clocks.now
        )
        self.get(sessions.LINK_PATH)
        return self.post(sessions.LINK_PATH, link=secret)

    def log_in(self, key: str, to: str = "/") -> Page:
        self.get("/login")
        return self.post("/login", key=key, to=to)

    @property
    def secret(self) -> str:
        cookie = self.client.get_cookie(COOKIE)
        return cookie.value if cookie else ""

    def _read(self, ask: Callable[[], TestResponse]) -> Page:
        content: list[Mapping[str, Any]] = []

        def keep(_: object, context: Mapping[str, Any], **__: object) -> None:
            content.append(context)

        with template_rendered.connected_to(keep, self.deployment.app):
            response = ask()
        response.request.environ["wsgi.input"].close()  # a file, if the body is long
        page = Page(response, content)
        found = _TOKEN.search(page.html)
        self.token = found[1] if found else self.token
        return page


def logged_in(deployment: Deployment, role: Role = Role.ANALYST, path: str = "") -> Visitor:
    """Return a visitor who has logged in, at a page if one is named."""
    visitor = Visitor(deployment)
    visitor.enter(role)
    if path:
        visitor.get(path)
    return visitor
