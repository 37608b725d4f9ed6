"""Whether a page has room: nothing is wider than the screen, no chart lies over what follows."""

from __future__ import annotations

from tests.browser.chromium import Browser

FITS = """
const wide = document.documentElement.scrollWidth <= window.innerWidth;
const places = [...document.querySelectorAll('.plot')];
const apart = places.every((each) => {
  const drawn = each.querySelector('.main-svg').getBoundingClientRect();
  const under = each.closest('figure').querySelector('.under').getBoundingClientRect();
  return drawn.bottom <= under.top + 1 && drawn.right <= window.innerWidth;
});
return wide && apart;
"""


def fits(browser: Browser) -> bool:
    """Whether everything has its place."""
    return bool(browser.run(FITS))
