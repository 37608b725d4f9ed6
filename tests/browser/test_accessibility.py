"""Every page, audited: names, order, contrast, overflow and the keyboard, in both themes."""

from __future__ import annotations

import pytest

from veilcount_aggregator.records.api_keys import Role

from .chromium import Browser, complaints

TAB = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
STOP = """const at = document.activeElement, style = getComputedStyle(at);
return [at.id || at.getAttribute('name') || at.textContent.trim(),
        at === document.body || at.closest('main') === null && at.offsetLeft < -1000,
        style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2];"""
#: pages that no other test audits, and, in full runs, all
PAGES = (
    "/collections/latency",
    "/collections/opened",
    "/collections/theme/budget",
    "/operations?collection=opened",
    "/plan?kind=strings&devices=1000000&epsilon=2",
    "/collections/visits/releases?query=histogram&epsilon=0.5&from=2026-11-20&to=2026-11-20",
    *(
        pytest.param(path, marks=pytest.mark.full)
        for path in (
            *("/", "/plan", "/definitions", "/keys", "/collections/theme"),
            *("/collections/word", "/collections/quiet", "/collections/dark_curated"),
            *("/collections/latency/compare", "/collections/opened/budget"),
            *("/collections/theme/contrast", "/collections/theme/releases"),
            *("/collections/theme/privacy", "/collections/theme/definition"),
        )
    ),
)
MOST_STOPS = 80
ELSEWHERE = "http://127.0.0.2:9/"
LEAD = "document.querySelector('.lead').style"
ADD = "document.querySelector('main').innerHTML += "
FAULTS = {
    "document.querySelector('h1').remove()": "page-has-heading-one: ",
    "document.documentElement.lang = ''": "html-has-lang: ",
    "document.querySelector('label').remove()": "<input id=key> has no label",
    f"{LEAD}.color = '#999'": "contrast 2.",
    f"{LEAD}.opacity = '.4'": "contrast ",
    f"{LEAD} = 'width: 3000px; max-width: none'": "px are beyond the edge",
    f"{LEAD}.color = '#888'": "color-contrast: ",
    f"{ADD} '<h4>x</h4>'": "heading-order: h4",
    f"{ADD} '<nav></nav><nav></nav>'": "landmark-unique: nav",
    f"{ADD} '<button></button>'": "button-name: ",
    f"{ADD} '<input>'": "label: ",
    f"{ADD} '<p tabindex=1>x</p>'": "tabindex: ",
    f"{ADD} '<svg role=img></svg>'": "svg-img-alt: ",
    f"{ADD} '<p class=plot></p>'": "nothing of a chart is read out",
    f"{ADD} '<svg><text y=20>ab</text><text y=20 x=9>cd</text></svg>'": "labels overlap: ab, cd",
    f"{ADD} '<p id=key></p>'": "the id key is there twice",
    f"{ADD} '<pre>{'wide ' * 99}</pre>'": "scrollable-region-focusable: ",
    f"{ADD} '<figure class=chart><p class=plot id=x></p></figure>'": "no table behind x",
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_and_fits(browser: Browser, path: str) -> None:
    browser.enter(Role.ADMIN)
    browser.open(path)

    assert browser.audit() == []


def test_pages_without_a_session_are_accessible(browser: Browser) -> None:
    browser.expects("404")
    for path in ("/login", "/enter", "/nothing", "/docs"):
        browser.driver.get(browser.site.base + path)
        browser.wait("return document.body && !!document.querySelector('h1')")
        for theme in ("light", "dark"):
            browser.theme(theme)

            assert complaints(browser.driver) == [], (path, theme)


def test_the_keyboard_reaches_every_control_and_shows_its_focus(browser: Browser) -> None:
    browser.enter(Role.ADMIN)
    browser.open("/keys")
    stops = _stops(browser)
    names = [name for name, _, _ in stops]

    assert names[0] == "Skip to the content"
    assert {"Overview", "theme", "role", "label", "Create key"} <= set(names)
    assert names.index("Overview") < names.index("theme") < names.index("label")
    assert all(shown for _, hidden, shown in stops if not hidden)
    browser.open("/keys")
    _press(browser)
    assert browser.run("return document.activeElement.getBoundingClientRect().left") > 0
    browser.find(".skip").click()
    assert browser.run("return document.activeElement.id") == "main"


# -- what would be noticed -------------------------------------------------------------------------


def test_the_audit_notices_each_planted_fault(browser: Browser) -> None:
    missed = []
    for fault, complaint in FAULTS.items():
        browser.open("/login")
        browser.run(fault)
        if not any(complaint in each for each in complaints(browser.driver)):
            missed.append(fault)

    assert missed == []


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("console.error('a plain fault')", "a plain fault"),
        ("setTimeout(() => { throw new Error('thrown') })", "thrown"),
        ("document.body.append(Object.assign(document.createElement('script'), {text: '1'}))",
         "policy violated: script-src"),
        (f"fetch('{ELSEWHERE}').catch(() => 0)", "policy violated: connect-src"),
        (f"location.href = '{ELSEWHERE}'", f"requested elsewhere: {ELSEWHERE}"),
    ],
)  # fmt: skip
def test_a_complaint_is_noticed(browser: Browser, script: str, complaint: str) -> None:
    browser.open("/login")
    browser.run(script)

    browser.expect_complaint(complaint)


def test_a_correct_page_causes_no_complaint_and_overflow_is_noticed(browser: Browser) -> None:
    browser.enter(Role.ANALYST)
    browser.open("/plan")

    assert browser.complaints() == []
    assert browser.fits()
    for wide, style in (("#toml", "width: 3000px"), (".plot", "height: 10px")):
        browser.run(f"document.querySelector('{wide}').style.cssText = '{style}'")
        assert not browser.fits()
        browser.run(f"document.querySelector('{wide}').style.cssText = ''")


def _stops(browser: Browser) -> list[tuple[str, bool, bool]]:
    """Return where the keyboard stops, until it is through the page."""
    found: list[tuple[str, bool, bool]] = []
    for _ in range(MOST_STOPS):
        _press(browser)
        name, outside, shown = browser.run(STOP)
        if outside and found:
            break
        found.append((name, outside, shown))
    return found


def _press(browser: Browser) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.command("Input.dispatchKeyEvent", type=kind, **TAB)
