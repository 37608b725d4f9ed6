"""What a page draws: the descriptions that its scripts read."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.aggregator.dashboard.page_fixtures import Page


def drawn(page: Page, name: str) -> Any:
    """Return the description of a chart."""
    found = re.search(rf'id="{name}-data">(.*?)</script>', page.html, re.DOTALL)

    assert found is not None
    return json.loads(found[1])


def entry(page: Page, name: str) -> str:
    """Return what stands in a field of a form."""
    found = re.search(rf'<input[^>]*name="{name}"[^>]*>', page.html)

    assert found is not None
    value = re.search(r'value="([^"]*)"', found[0])
    return value[1] if value else ""


def chosen(page: Page, name: str) -> str:
    """Return what a choice of a form stands at."""
    select = re.search(rf'<select[^>]*name="{name}"[^>]*>(.*?)</select>', page.html, re.DOTALL)

    assert select is not None
    (value,) = re.findall(r'value="([^"]*)" selected', select[1])
    return str(value)
