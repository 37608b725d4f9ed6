"""What no answer may say: of what it is made, where it lies, how it failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version

from tests.aggregator.api.deployment_fixtures import Deployment, Response

#: makers and places; a release's number, since it says which holes are open
WORDS = re.compile(
    rb"granian|werkzeug|gunicorn|flask|jinja|python|hyper|traceback|site-packages|"
    rb'file "/|\.py\b|line \d+, in|sqlite|redis|zerodivision|secret\.py',
    re.IGNORECASE,
)


def leaks(reply: Response, deployment: Deployment) -> Iterator[str]:
    """Yield what an answer tells of its inside."""
    text = reply.body + repr(reply.headers).encode()
    store = deployment.aggregator.settings.store
    inside = (store, store.removeprefix("sqlite:///").partition("?")[0], version("flask"))
    yield from (each for each in inside if each.encode() in text)
    yield from (found.decode() for found in WORDS.findall(text))
