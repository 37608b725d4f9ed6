"""Python blocks: run in order, in one namespace a page; examples are compared.

A test harness is open meanwhile, so clients have no thread and no network. In plain code nobody
was asked for consent yet; in examples, as in tests, everyone has consented. Test functions run at
the end, each in a harness of its own, as pytest would run them.
"""

from __future__ import annotations

import doctest
import inspect
from types import SimpleNamespace
from typing import Any

from veilcount_client.testing import ClientHarness

from .output_match import Untrue
from .page_parser import Block
from .workspace import Place

PROMPT = ">>> "


#: what pages use without an import; the harness is there as the fixture `veilcount`
STAND_INS = {"ask": lambda _: True, "id": 7, "is_guest": True, "user": SimpleNamespace(pk=1)}


class PagePython:
    def __init__(self, place: Place, page: str) -> None:
        self._place, self._page = place, page
        self._harness = ClientHarness(consent=None).__enter__()
        self._names: dict[str, Any] = {"__name__": "page", "veilcount": self._harness, **STAND_INS}

    def run(self, block: Block) -> None:
        text = self._place.here(block.text)
        examples = PROMPT in text
        self._harness.consent = True if examples else None
        if examples:
            self._compare(text, block.line)
        else:
            code = "\n" * (block.line - 1) + text  # so that an error names the page's line
            exec(compile(code, self._page, "exec"), self._names)  # noqa: S102 - the page's own

    def _compare(self, text: str, line: int) -> None:
        parser = doctest.DocTestParser()
        test = parser.get_doctest(text, self._names, self._page, self._page, line - 1)
        failures: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        runner.run(test, out=failures.append, clear_globs=False)
        self._names.update(test.globs)  # what the examples have named
        if failures:
            raise Untrue("".join(failures))

    def close(self) -> None:
        self._harness.__exit__()

    def test(self) -> None:
        """Run the test functions that the page has shown."""
        self.close()
        for name, function in list(self._names.items()):
            if name.startswith("test_"):
                with ClientHarness() as harness:
                    function(*[harness for _ in inspect.signature(function).parameters])
