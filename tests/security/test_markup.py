"""What a definition, a label or an address can hold, on every page: text, and never markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from veilcount_aggregator.records.api_keys import Role
from veilcount_aggregator.web.dashboard.browser_sessions import FIELD
from veilcount_shared.errors import DefinitionError

from ..aggregator.web.api.deployment_fixtures import NOW, Deployment, deployment
from ..aggregator.web.dashboard.page_fixtures import Visitor
from ..browser.browser_population import days, definitions
from .access_table import Kind, of_kind
from .page_parser import Form, ParsedPage

MARK = "marked"
#: ends an attribute, a text, a script, a style, a comment, a template
EVIL = (
    f"""'"></script></style></textarea></title>--><{MARK} on{MARK}=1>"""
    f"""{{{{ {MARK} }}}}<svg/onload={MARK}>&lt;{MARK}&gt;"""
)
SHORT = f"""\"'></script><{MARK} x=""" + "'"
LEADING = ("javascript:marked()", "//elsewhere.example/", "data:text/html,marked")


TEXTS = dict.fromkeys(("question", "owner", "purpose"), EVIL)
TERMS: dict[str, Any] = TEXTS | {"unit": "day"} | days("2026-12-01", "2026-12-31")
LOCAL = TERMS | {"epsilon": 1}
VALUES = {"values": [EVIL, SHORT, "=1+1", "<b>bold</b>"]}
CENTRAL = {"unit": "user", "model": "central", "adjacency": "substitute", "budget": 1}
#: every text is hostile
COLLECTIONS = {
    "words": LOCAL | VALUES | {"other": "other" + SHORT, "segments.arm": [EVIL, "B"]},
    "number": LOCAL | {"range": [0, 240], "measure": "mean"},
    "curve": LOCAL | {"range": [-10, 10], "measure": "distribution"},
    "crossed": LOCAL | VALUES | {"cross.plan": [EVIL, "paid"]},
    "local": LOCAL | VALUES | {"unit": "user", "twin": "curated"},
    "curated": TERMS | VALUES | CENTRAL,
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment whose admin pushed whatever somebody sent him, with answers to it."""
    with deployment(tmp_path_factory.mktemp("hostile"), definitions(COLLECTIONS), now=NOW) as made:
        for name in COLLECTIONS:
            made.verdicts(*(made.report(name) for _ in range(30)))
        made.key(Role.ANALYST, SHORT)
        yield made


@pytest.fixture
def admin(hostile: Deployment) -> Visitor:
    visitor = Visitor(hostile)
    visitor.enter(Role.ADMIN)
    visitor.get("/")
    return visitor


def pages(*names: str) -> list[str]:
    """Return a path to each page, of each of these collections where it is of one."""
    rules = [endpoint.path for endpoint in of_kind(Kind.PAGE) if endpoint.method == "GET"]
    rules = [rule for rule in rules if "<form>" not in rule]
    named = [rule.replace("<name>", name) for rule in rules if "<name>" in rule for name in names]
    return [*(rule for rule in rules if "<" not in rule), *named, "/login", "/nothing"]


def costly(path: str) -> object:
    """Return a page as a parameter; one that computes for seconds is looked at in full runs."""
    slow = path.endswith("contrast") and "curated" not in path
    return pytest.param(path, marks=[pytest.mark.full] if slow else [])


FEW = ("words", "curated")
OURS = ("script-src", "connect-src", "form-action", "frame-src", "object-src", "worker-src")
HTML = {"Accept": "text/html"}


@pytest.mark.parametrize("path", [costly(each) for each in pages(*COLLECTIONS)])
def test_what_definitions_and_addresses_hold_is_text(admin: Visitor, path: str) -> None:
    """Questions, owners, values, segments, labels of keys.

    In each field that a page, its links or its forms know of, alone and all at once.
    By its policy, a page loads and sends nothing elsewhere: no script of its own, no eval, no
    frame, no base, no other host.
    """
    admin.headers = HTML
    page = admin.get(path)
    header = page.response.headers["Content-Security-Policy"]
    policy = dict(part.strip().partition(" ")[::2] for part in header.split(";"))

    assert page.status in {200, 303, 404}
    assert not ParsedPage(page.html).foreign(MARK)
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert {policy.get(name, "'none'") for name in OURS} <= {"'self'", "'none'"}
    assert policy.get("base-uri", "'none'") == "'none'"
    assert "unsafe" not in header
    if path in pages(*FEW):
        names = ParsedPage(page.html).query_names() | {"to", "from", "series", "find", "page"}
        _check_addresses(admin, path, sorted(names))


def _check_addresses(admin: Visitor, path: str, names: Sequence[str]) -> None:
    for evil in (EVIL, *LEADING):
        queries = [f"{name}={quote(evil)}" for name in names]
        for query in (*(queries if evil is EVIL else ()), "&".join(queries)):
            page = admin.get(f"{path}?{query}")

            assert page.status < 500, query
            assert not ParsedPage(page.html).foreign(MARK), query


def test_what_a_path_holds_is_text_in_every_trouble(admin: Visitor) -> None:
    admin.headers = HTML
    named = [each.path for each in of_kind(Kind.PAGE, Kind.OPEN) if each.method == "GET"]
    for name in (EVIL, SHORT, "..", "\x1b[31m", "a\nb"):
        paths = [re.sub("<.*?>", quote(name, safe=""), path) for path in named if "<" in path]
        for page in map(admin.get, paths):
            assert page.status in {400, 404}
            assert not ParsedPage(page.html).foreign(MARK)


#: forms that stand on no page before something was typed
LATER = (
    Form("/definitions", posts=True, fields={"text": "", "lists": ""}),
    Form("/collections/curated/releases", posts=True, fields={"query": "", "epsilon": "1"}),
    Form("/login", posts=True, fields={"key": "wrong", "to": "/"}),
    Form("/enter", posts=True, fields={"link": ""}),
)


def test_what_a_form_sends_is_text_on_the_page_that_answers(admin: Visitor) -> None:
    """Each field of each form of each page, sent back with markup in it."""
    admin.headers = HTML
    found = [form for path in pages(*FEW) for form in ParsedPage(admin.get(path).html).forms]
    typed = {form.action: form for form in (*found, *LATER) if form.posts}
    for form in typed.values():
        for name in form.fields.keys() - {FIELD}:
            page = admin.post(form.action, **form.fields | {FIELD: admin.token, name: EVIL})

            assert page.status < 500
            assert not ParsedPage(page.html).foreign(MARK), (form.action, name)
            assert not urlsplit(page.leads_to).netloc
    assert typed.keys() >= {"/keys", "/definitions/preview"}


def test_markup_that_got_through_would_be_noticed() -> None:
    planted = (
        f"<p>{EVIL}</p>",
        f'<input name="to" value="{EVIL}">',
        *(f'<a href="{link}">on</a>' for link in LEADING),
        '<form method="post" action="https://elsewhere.example/">',
        "<script>marked()</script>",
        '<p onclick="marked()">',
    )

    assert all(ParsedPage(page).foreign(MARK) for page in planted)


@pytest.mark.parametrize(
    "odd", ["\x1b[31m", "a\nb", "\x00", "\x9b31m", "\u202e", "\u2028", "\x7f", "\ud800"]
)
def test_no_definition_holds_what_a_terminal_obeys(hostile: Deployment, odd: str) -> None:
    """It is refused, so no page, log line or terminal ever gets it."""
    texts = {"question": "?", "owner": "we", "purpose": "to know", "other": "another"}
    for key in (*texts, "values", "segments.arm"):
        lists = {name: ["a", "b"] for name in ("values", "segments.arm")}
        hostile_text = {key: f"a{odd}b" if key in texts else ["a", f"a{odd}b"]}
        with pytest.raises(DefinitionError) as refused:
            hostile.push(definitions({"c": LOCAL | texts | lists | hostile_text}))

        assert odd not in str(refused.value), key
