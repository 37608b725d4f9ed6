"""HTTP blocks: the request is sent, and the reply that the page shows is compared."""

from __future__ import annotations

import re

import requests

from .output_match import check
from .page_parser import Block, Unreadable
from .workspace import LOOPBACK, Place

_REQUEST = re.compile(r"(?P<method>[A-Z]+) (?P<path>/\S*)(?: HTTP/1\.1)?")
_REPLY = re.compile(r"^HTTP/1\.1 (?P<status>\d{3}).*$", re.MULTILINE)


def run_request(block: Block, place: Place, where: str) -> None:
    """Send the text before the status line; compare the status, and the body if one is shown."""
    text = place.here(block.text)
    shown = _REPLY.search(text)
    sent = text[: shown.start()] if shown else text
    reply = _send(sent.strip("\n"), place)
    status = int(shown["status"]) if shown else requests.codes.ok
    check(f"{status}", f"{reply.status_code}", f"{where}: {reply.text}")
    _, _, body = text[shown.end() :].partition("\n\n") if shown else ("", "", "")
    if body.strip():
        check(_dense(body), _dense(place.there(reply.text)), where)


def _send(text: str, place: Place) -> requests.Response:
    head, _, body = text.partition("\n\n")
    first, *lines = head.splitlines()
    request = _REQUEST.fullmatch(first)
    if request is None:
        raise Unreadable(f"{first}: no request")
    headers = dict(line.split(": ", 1) for line in lines)
    headers.pop("Host", None)
    with requests.Session() as session:
        session.trust_env = False
        url = place.here(LOOPBACK) + request["path"]
        return session.request(request["method"], url, headers=headers, data=body.encode())


def _dense(text: str) -> str:
    """Return text without white space: JSON is shown in more lines than it is sent in."""
    return "".join(text.split())
