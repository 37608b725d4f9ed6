"""Command lines that are refused: exit code 2 or 3, and one line on stderr that names the fix."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.system.server import free_port

from .conftest import Type

#: FILE: a definitions file; STORE: a new store; ANSWERED: one with reports; the rest is typed
REFUSED = [
    ("nonsense", "--help"),
    ("keys create --role owner", "device"),
    ("keys list", "VEILCOUNT_STORE"),
    ("keys list --store file:x", "sqlite:///"),
    ("keys list --store sqlite:////nowhere/x.db", "veilcount init"),
    ("keys revoke 00000000 --store STORE", "veilcount keys list"),
    ("collections close nobody --store STORE", "no such collection"),
    ("collections push MISSPELLED --store STORE", "did you mean question?"),
    ("store restore-epochs nothing --store STORE", "'nothing'"),
    ("store backup FILE --store STORE", "exists"),
    ("store unlock --store STORE", "no such file"),
    ("store unlock --store STORE --journal MISSPELLED", "line 1: damaged"),
    ("check none.toml", "none.toml"),
    ("check BROKEN", "not readable TOML"),
    ("check MISSPELLED", "did you mean question?"),
    ("check INCOMPLETE", "this key is missing"),
    ("notice FILE theem", "did you mean theme?"),
    ("audit", "--self-test"),
    ("audit --samples 3", "--samples"),
    ("audit --alpha 2", "between 0 and 1"),
    ("audit FILE theme --samples 1000 --alpha 1e-300", "give more"),
    ("plan --devices 10", "exactly two"),
    ("plan --devices 10 --epsilon 17", "epsilon"),
    ("plan --devices 0 --epsilon 1", "devices = 0"),
    ("plan --devices 10 --epsilon 1 --range 5..1", "lower number first"),
    ("plan --devices 10 --epsilon 1 --values 3 --range 0..1", "either"),
    ("plan --devices 20 --error 0.000000001 --values 50", "more devices"),
    ("contrast FILE --n 10", "FILE and NAME"),
    ("contrast theme --series 123456 --store ANSWERED", "one of"),
    ("simulate FILE theme --n 100 --truth drk=1", "did you mean dark"),
    ("simulate FILE theme --n 100 --truth normal", "zipf"),
    ("simulate FILE theme --n 100 --truth dark=0", "above 0"),
    ("simulate FILE theme --n 100 --truth dark=x", "not a number"),
    ("simulate FILE minutes --n 100 --truth 300=1", "0 to 240"),
    ("simulate FILE crash --n 100", "central"),
    ("estimate theem --store ANSWERED", "did you mean theme?"),
    ("estimate theme --values drk --store ANSWERED", "dark"),
    ("estimate theme --segment leg:A --store ANSWERED", "segments are arm"),
    ("estimate theme --level 95 --store ANSWERED", "0.95"),
    ("estimate theme --from yesterday --store ANSWERED", "2026-12-01"),
    ("estimate theme --alert dark --store ANSWERED", "dark > 0.6"),
    ("estimate crash --store ANSWERED", "releases"),
    ("estimate theme --fakes 2 --store ANSWERED", "0.01"),
    ("estimate theme --among answered --store ANSWERED", "presence is public"),
    ("estimate theme", "VEILCOUNT_URL"),
    ("estimate theme --url stats.example.org --key k", "https://"),
    ("estimate theme --url http://stats.example.org --key k", "in clear"),
    ("estimate theme --url http://127.0.0.1:9", "VEILCOUNT_KEY"),
    ("estimate theme --url http://127.0.0.1:9 --key k --store sqlite:////x", "not both"),
    ("compare theme arm:A B --store ANSWERED", "arm:A"),
    ("compare theme arm:A arm:A --store ANSWERED", "shares reports"),
    ("budget theme --n 0 --store ANSWERED", "at least one"),
    ("budget nothing_like_it --store ANSWERED", "there are theme, minutes, crash"),
    ("release crashed", "it has the journal"),
    ("release crashed --query count --url http://127.0.0.1:9 --key k", "--epsilon"),
    ("release crashed --epsilon 1 --url http://127.0.0.1:9 --key k", "--query"),
    ("release crashed --dry-run --url http://127.0.0.1:9 --key k", "--query"),
    ("release crashed --query '{count' --epsilon 1 --url http://127.0.0.1:9 --key k", "JSON"),
    ("release crashed --query count --epsilon 0 --url http://127.0.0.1:9 --key k", "--epsilon"),
    ("serve --store sqlite:////nowhere/x.db", "veilcount init"),
    ("serve --store sqlite:///BROKEN", "restore a backup"),
    ("serve --store STORE --bind 8420", "host:port"),
    ("serve --store STORE --bind nowhere.invalid:8420", "no such host"),
    ("serve --store STORE --workers 0", "workers"),
    ("serve --store STORE --max-new-pseudonyms 0", "--max-new-pseudonyms"),
    ("serve --store STORE --max-series-memory much", "--max-series-memory"),
    ("serve --store STORE --max-store-memory 0", "256MB or 2GB"),
    ("serve --store STORE --analysis-memory 100", "give 512 or more"),
    ("serve --store STORE --bind 127.0.0.1:PORT --collections /nowhere.toml", "cannot be read"),
    ("serve --store STORE --bind 127.0.0.1:PORT --collections BROKEN", "not readable TOML"),
]
UNREACHABLE = [
    ("keys list --store redis://127.0.0.1:1/0", "127.0.0.1:1"),
    ("estimate theme --url http://127.0.0.1:9 --key k", "veilcount serve"),
    ("collections push FILE --url http://127.0.0.1:9 --key k", "veilcount serve"),
]
TEXTS = {
    "BROKEN": "app = ",
    "MISSPELLED": 'app = "a"\n[b]\nquestoin = "?"',
    "INCOMPLETE": 'app = "a"\n[b]\nquestion = "?"',
}


@pytest.mark.parametrize(
    ("line", "fix", "code"),
    [*((*each, 2) for each in REFUSED), *((*each, 3) for each in UNREACHABLE)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_error_is_one_line_that_names_the_fix(
    line: str,
    fix: str,
    code: int,
    *,
    typed: Type,
    file: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("VEILCOUNT_STORE", "VEILCOUNT_URL"):
        monkeypatch.delenv(name, raising=False)
    for fixture in ("STORE", "ANSWERED"):
        if fixture in line:
            line = line.replace(fixture, request.getfixturevalue(fixture.lower()))
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
        line = line.replace(name, str(tmp_path / name))
    line = line.replace("PORT", str(free_port())).replace("FILE", file)
    refused = typed(*shlex.split(line))

    assert refused.code == code
    assert fix in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    assert refused.out == ""
