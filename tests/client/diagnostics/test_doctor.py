"""doctor and check: each line says what to do, and neither changes anything."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

from tests.aggregator.api.deployment_fixtures import world
from veilcount_client import Client
from veilcount_client.__main__ import run
from veilcount_client.delivery.transport import Later
from veilcount_client.diagnostics.definition_diff import compare
from veilcount_client.diagnostics.doctor import examine
from veilcount_client.diagnostics.result import DiagnosticResult
from veilcount_client.settings import ClientSettings, read_settings
from veilcount_client.testing import RecordingTransport, SettableClock
from veilcount_shared import parse_collections

FILE = """
app = "acme-editor"

[theme]
question = "Which theme is active?"
values = ["light", "dark", "system"]
epsilon = 1
unit = "month"
from = 2026-11-01
until = 2027-05-01

[saved]
question = "Was the file saved?"
boolean = true
epsilon = 0.5
unit = "event"
per_day = 2
from = 2026-11-01
until = 2027-05-01
answers = 2
"""
COLLECTIONS = parse_collections(FILE, lambda _: [])
NOW = datetime(2026, 12, 3, 12, tzinfo=UTC)
CLOSED = "http://127.0.0.1:9"
DISK = Path(__file__).parents[3] / "build"
App = Callable[..., object]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on a disk: one in memory is what `doctor` warns of."""
    DISK.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=DISK) as folder:
        yield Path(folder)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The app's definitions."""
    path = tmp_path / "collections.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def settings(file: Path, tmp_path: Path) -> ClientSettings:
    """What the app gives its client."""
    return settings_of(collections=file, state=tmp_path / "state", url=CLOSED)


def settings_of(environment: Mapping[str, str] | None = None, **given: object) -> ClientSettings:
    """Return settings as from the command line, of a machine with this environment."""
    texts = {name: str(value) for name, value in given.items()}
    return read_settings(environment or {}, **texts)


def found(settings: ClientSettings, now: datetime = NOW) -> dict[str, DiagnosticResult]:
    """Return what the doctor finds, by subject."""
    return {each.subject: each for each in examine(settings, now.timestamp)}


def client(settings: ClientSettings, transport: RecordingTransport | None = None) -> Client:
    """Return the app's client, in the middle of its campaign."""
    return Client(
        settings.url,
        collections=settings.collections,
        state_dir=settings.state,
        persons=settings.persons,
        transport=transport or RecordingTransport(),
        clock=SettableClock(NOW),
        threaded=False,
    )


# -- the machine -----------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", ["VEILCOUNT_DISABLED", "DO_NOT_TRACK"])
def test_a_kill_switch_is_named(switch: str) -> None:
    """Nothing is recorded while one is set."""
    told = found(settings_of({switch: "1"}))["kill switch"]

    assert not told.ok
    assert switch in told.message


def test_definitions_are_missing() -> None:
    """Without a file there is nothing to record."""
    assert "--collections" in found(settings_of())["definitions"].message


@pytest.mark.parametrize(
    ("text", "word"), [("app = 3", "app"), ('app = "a"\n[b]\nepsilon = 99', "[b]")]
)
def test_definitions_that_do_not_load_say_why(file: Path, text: str, word: str) -> None:
    """The key and the fix are the loader's."""
    file.write_text(text, encoding="utf-8")
    told = found(settings_of(collections=file))["definitions"]

    assert not told.ok
    assert word in told.message


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (datetime(2026, 10, 31, tzinfo=UTC), "starts 2026-11-01"),
        (datetime(2027, 5, 1, tzinfo=UTC), "ended 2027-05-01"),
    ],
)
def test_a_clock_outside_the_campaign_is_named(
    settings: ClientSettings, now: datetime, word: str
) -> None:
    """Either the clock is wrong, or the dates are."""
    told = found(settings, now)["clock, theme"]

    assert not told.ok
    assert word in told.message


def test_a_clock_inside_the_campaign_is_well(settings: ClientSettings) -> None:
    """The campaign runs."""
    assert found(settings)["clock, theme"].ok


def test_a_place_that_cannot_be_written_is_named(settings: ClientSettings, tmp_path: Path) -> None:
    """No durable place: nothing is recorded."""
    (tmp_path / "file").write_text("in the way", encoding="ascii")
    blocked = settings_of(collections=settings.collections, state=tmp_path / "file" / "state")

    assert found(settings)["directory"].ok
    assert "Not a directory" in found(blocked)["directory"].message


def test_a_directory_that_refuses_is_named(
    settings: ClientSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe is a real file; here the disk says no."""

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    told = found(settings)["directory"]

    assert not told.ok
    assert "make it writable" in told.message


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a directory in memory")  # noqa: S108
def test_a_state_in_memory_is_named(settings: ClientSettings) -> None:
    """What was spent must outlast a restart."""
    told = found(settings_of(collections=settings.collections, state="/dev/shm/veilcount"))  # noqa: S108

    assert not told["directory"].ok
    assert "in memory" in told["directory"].message


# -- the state -------------------------------------------------------------------------------------


def test_the_doctor_makes_no_state(settings: ClientSettings, tmp_path: Path) -> None:
    """A machine on which the app never ran stays as it is; the file alone sets the ceiling."""
    told = found(settings)

    assert not (tmp_path / "state").exists()
    assert not told["consent"].ok
    assert "8 in all, 2 a day" in told["ceiling"].message


def test_the_doctor_sets_no_ceiling(settings: ClientSettings, file: Path) -> None:
    """A look with a larger file does not make the app's own file the second."""
    with client(settings) as app:
        before = app.reservation.ceilings
    file.write_text(FILE.replace("epsilon = 1\n", "epsilon = 2\n"), encoding="utf-8")
    told = found(settings)["ceiling, theme"]
    file.write_text(FILE, encoding="utf-8")

    assert not told.ok
    assert "raise it" in told.message
    with client(settings) as app:
        assert app.reservation.ceilings == before
        assert not app.reservation.refused


@pytest.mark.parametrize(
    ("answer", "well", "word"), [(None, False, "not asked"), (False, True, "said no")]
)
def test_missing_consent_is_reported(
    settings: ClientSettings, answer: Any, well: object, word: str
) -> None:
    """Unasked is something to do; a no is an answer."""
    with client(settings) as app:
        if answer is not None:
            app.consent(answer)
    told = found(settings)["consent"]

    assert told.ok is well
    assert word in told.message


def test_a_collection_that_consent_does_not_cover_is_named(
    settings: ClientSettings, file: Path
) -> None:
    """A later form of a collection takes another question to the person."""
    with client(settings) as app:
        app.consent(True)
    covered = found(settings)["consent"]
    file.write_text(FILE.replace("epsilon = 0.5", "epsilon = 0.25"), encoding="utf-8")
    told = found(settings)["consent"]

    assert covered.ok
    assert not told.ok
    assert "saved" in told.message
    assert "theme" not in told.message


@pytest.mark.parametrize("consented", [0, 2])
def test_persons_are_counted(settings: ClientSettings, consented: int) -> None:
    """Of many persons only the number of those who consented is reported."""
    many = settings_of(
        collections=settings.collections, state=settings.state, url=CLOSED, persons=1
    )
    with client(many) as app:
        for person in range(consented):
            app.person(person).consent(True)

    assert found(many)["consent"] == DiagnosticResult(
        "consent",
        bool(consented),
        "2 persons consented" if consented else "0 persons consented: call consent(...)",
    )


def recorded(settings: ClientSettings, *, away: bool) -> dict[str, DiagnosticResult]:
    """Record a value, try to send it to an aggregator that is away; return what is found."""
    transport = RecordingTransport()
    with client(settings, transport) as app:
        app.consent(True)
        app.record("theme", "dark")
        app.flush(until="stored")
        if away:
            transport.outcome = Later("offline", 60)
            app.flush()
    return found(settings)


def test_what_waits_for_its_time_is_well(settings: ClientSettings) -> None:
    """Reports leave at a random time: no reason to worry."""
    told = recorded(settings, away=False)["outbox"]

    assert told.ok
    assert "1 waiting for their time" in told.message


def test_what_waits_after_a_failure_is_named(settings: ClientSettings) -> None:
    """The aggregator was away: until when it is left alone, and after how many failures."""
    told = recorded(settings, away=True)["outbox"]

    assert not told.ok
    assert "failed attempts: 1" in told.message


def test_what_is_overdue_leaves_with_the_app(settings: ClientSettings) -> None:
    """The app has not run since."""
    recorded(settings, away=False)
    told = found(settings, datetime(2026, 12, 9, tzinfo=UTC))["outbox"]

    assert "and due" in told.message


def test_losses_come_with_advice(settings: ClientSettings) -> None:
    """What could be mended is reported; a frozen answer is as it should be."""
    with client(settings) as app:
        app.consent(True)
        app.record("colour", "red")
        app.record("theme", "dark")
        app.record("theme", "dark")
    told = [each for each in examine(settings, NOW.timestamp) if each.subject == "lost"]

    assert [each.message for each in told] == [
        "1 unknown of colour: a name that the definitions do not have: see the app's log"
    ]


def test_a_state_of_another_kind_is_named(settings: ClientSettings) -> None:
    """An address that is no state says which are."""
    told = found(settings_of(collections=settings.collections, state="ftp://host"))["state"]

    assert not told.ok
    assert "redis://" in told.message


# -- the aggregator --------------------------------------------------------------------------------


@pytest.fixture
def serve() -> Iterator[Callable[[App], str]]:
    """What serves an app on the loopback and returns its address."""
    servers = []

    def start(app: App) -> str:
        server = make_server("127.0.0.1", 0, app)  # type: ignore[arg-type] # any WSGI app
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def probe(url: str, now: datetime | None = None) -> dict[str, DiagnosticResult]:
    """Return what is found of an aggregator."""
    return found(settings_of(url=url), now or datetime.now(UTC))


def test_no_address_is_named() -> None:
    """Without one nothing can leave."""
    assert "--url" in found(settings_of())["aggregator"].message


def test_an_aggregator_that_is_away_is_named() -> None:
    """The address is in the line."""
    told = probe(CLOSED)["aggregator"]

    assert not told.ok
    assert CLOSED in told.message


def test_an_aggregator_in_production_is_well(serve: Callable[[App], str], tmp_path: Path) -> None:
    """It refuses the test batch by name, counts nothing, and its clock is ours."""
    with world(tmp_path, FILE, now=NOW) as aggregator:
        url = serve(aggregator.app)
        told = probe(url)

        assert told["aggregator"] == DiagnosticResult("aggregator", True, f"{url} speaks version 1")
        assert told["clock"].ok
        assert not any(aggregator.counted(name) for name in COLLECTIONS)


def test_a_clock_far_from_the_aggregators_is_named(
    serve: Callable[[App], str], tmp_path: Path
) -> None:
    """More than the jitter apart, the device's periods begin visibly early or late."""
    with world(tmp_path, now=NOW) as aggregator:
        url = serve(aggregator.app)

        for off in (timedelta(hours=-2), timedelta(hours=2), timedelta(days=-2000)):
            assert not probe(url, datetime.now(UTC) + off)["clock"].ok


PROBLEM = "application/problem+json"


@pytest.mark.parametrize(
    ("status", "kind", "body", "word"),
    [
        (401, "text/plain", "", "VEILCOUNT_KEY"),
        (404, "text/html", "<html>", "no aggregator"),
        (503, "text/plain", "", "busy or down"),
        (302, "text/html", "", "proxy"),
        (400, PROBLEM, '{"type": "urn:veilcount:problem:unknown-version"}', "same release"),
        (400, PROBLEM, "not JSON", "proxy"),
        (400, PROBLEM, "[]", "proxy"),
    ],
)
def test_other_answers_say_what_to_do(
    status: int, kind: str, body: str, word: str, serve: Callable[[App], str]
) -> None:
    """A key, a path, a version, a proxy: each has its line."""

    @Request.application
    def answer(_: Request) -> Response:
        return Response(body, status, content_type=kind)

    told = probe(serve(answer))["aggregator"]

    assert not told.ok
    assert word in told.message


def test_an_aggregator_in_development_says_so(serve: Callable[[App], str]) -> None:
    """It takes test batches."""

    @Request.application
    def answer(_: Request) -> Response:
        return Response('{"verdicts": []}', content_type="application/json")

    told = probe(serve(answer))["aggregator"]

    assert told.ok
    assert "development" in told.message


# -- check -----------------------------------------------------------------------------------------


def changes(new: str, old: str = FILE) -> list[tuple[str, str]]:
    """Return what is to be decided about a new file, by collection."""
    files = [parse_collections(text, lambda _: []) for text in (new, old)]
    return [(each.subject, each.message) for each in compare(*files) if not each.ok]


def test_the_same_file_changes_nothing() -> None:
    """The series go on."""
    assert changes(FILE) == []


def test_a_fingerprinted_key_breaks_the_series() -> None:
    """The keys are named as in the file; what only follows from them is not."""
    told = changes(FILE.replace("per_day = 2", "per_day = 1"))

    assert [about for about, _ in told] == ["saved"]
    assert told[0][1].startswith("per_day changed: a new series")


def test_a_longer_list_of_values_breaks_the_series() -> None:
    """The domain is in the fingerprint, the mechanism follows from it."""
    told = changes(FILE.replace('"system"]', '"system", "sepia"]'))

    assert told[0][1].startswith("domain changed")


def test_more_epsilon_is_spelled_out_and_held_to_the_ceiling() -> None:
    """Event, day and user before and after; and the sum of the old file is the ceiling."""
    told = dict(changes(FILE.replace("epsilon = 0.5", "epsilon = 2")))
    says = " ".join(text for _, text in changes(FILE.replace("epsilon = 0.5", "epsilon = 2")))

    assert told.keys() == {"saved"}
    assert "0.5 -> 2 per event, 1 -> 4 per day, 2 -> 8 per user" in says
    assert "refused at load" in says


def test_less_epsilon_needs_no_ceiling() -> None:
    """Only the series breaks."""
    told = changes(FILE.replace("epsilon = 0.5", "epsilon = 0.25"))

    assert len(told) == 1


def test_a_reworded_question_is_a_warning() -> None:
    """The fingerprint stays, and with it a consent that was given to other words."""
    told = changes(FILE.replace("Was the file saved?", "Did you save?"))

    assert [about for about, _ in told] == ["saved"]
    assert "worded anew" in told[0][1]


def test_a_new_collection_is_not_covered_by_consent() -> None:
    """It is asked for, and it does not fit under the old file's ceiling."""
    first = FILE[: FILE.index("[saved]")]
    told = changes(FILE, first)

    assert [about for about, _ in told] == ["saved", "saved"]
    assert "consent does not cover it" in told[0][1]
    assert "ceiling" in told[1][1]


def test_a_renamed_collection_goes_on_from_its_old_name() -> None:
    """replaces carries what was spent; the series is a new one all the same."""
    renamed = FILE.replace("[saved]", '[stored]\nreplaces = "saved"')
    told = changes(renamed)

    assert [about for about, _ in told] == ["stored"]
    assert told[0][1].startswith("name changed")


def test_a_removed_collection_is_reported() -> None:
    """It is no decision: what it reserved stays reserved."""
    files = [
        parse_collections(text, lambda _: []) for text in (FILE[: FILE.index("[saved]")], FILE)
    ]
    told = [each for each in compare(*files) if each.subject == "saved"]

    assert [each.ok for each in told] == [True]
    assert 'replaces = "saved"' in told[0].message


CAMPAIGN = """
app = "acme-editor"
[{name}]
question = "Which theme is active?"
boolean = true
epsilon = 1
unit = "{unit}"
from = {start}
until = {until}
"""


def campaign(start: str, until: str, *more: str, name: str = "theme", unit: str = "month") -> str:
    """Return the file of one campaign."""
    return CAMPAIGN.format(name=name, start=start, until=until, unit=unit) + "\n".join(more)


FIRST = campaign("2026-12-15", "2027-03-01")


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (campaign("2027-03-01", "2027-05-15"), FIRST),
        (campaign("2027-06-01", "2027-09-01"), FIRST),
        (campaign("2027-03-01", "2027-05-15", 'replaces = "theme"', name="look"), FIRST),
        (campaign("2027-03-01", "2027-06-01"), campaign("2026-12-01", "2027-03-01", "answers = 3")),
        (
            campaign("2027-03-01", "2027-06-01", unit="user"),
            campaign("2026-12-01", "2027-03-01", unit="user"),
        ),
    ],
)
def test_new_dates_of_the_same_size_have_nothing_left(new: str, old: str) -> None:
    """Whoever answered all of the old campaign finds the ledger spent: one line says what to do."""
    told = [says for _, says in changes(new, old) if "nothing left" in says]

    assert len(told) == 1
    assert "a new name, or" in told[0]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (FIRST, FIRST),
        (campaign("2026-12-15", "2027-06-01"), FIRST),
        (campaign("2026-12-15", "2026-12-30"), campaign("2026-12-15", "2026-12-24")),
        (campaign("2027-01-01", "2027-03-01"), campaign("2026-12-31", "2027-03-01")),
        (campaign("2027-03-01", "2027-07-01"), FIRST),
        (campaign("2027-03-01", "2027-06-01", name="another"), FIRST),
        (campaign("2027-03-01", "2027-06-01"), campaign("2026-12-01", "2027-03-01", "answers = 2")),
    ],
)
def test_a_form_that_has_an_answer_left_is_not_warned_of(new: str, old: str) -> None:
    """The same dates, a longer campaign, a larger one, a name of its own, a change on the way."""
    assert not any("nothing left" in says for _, says in changes(new, old))


# -- a time that is paid for is not paid for twice -------------------------------------------------


def again(new: str, old: str) -> list[tuple[str, bool]]:
    """Return what is reported of who answers a new form when, and whether it is well."""
    files = [parse_collections(text, lambda _: []) for text in (new, old)]
    told = [(each.message, each.ok) for each in compare(*files)]
    return [(says, well) for says, well in told if "under the old form" in says]


def under(unit: str, start: str = "2026-12-01", until: str = "2027-03-01", *more: str) -> str:
    """Return the file of one campaign in which a person answers so often."""
    return campaign(start, until, *more, unit=unit)


@pytest.mark.parametrize(
    ("new", "old", "paid", "none", "after"),
    [
        ("day", "month", "in 2026-12", "daily answers", "2027-01-01"),
        ("event", "month", "in 2026-12", "answers", "2027-01-01"),
        ("week", "month", "in 2026-12", "weekly answers", "2027-01-04"),
        ("month", "day", "on 2026-12-01", "monthly answers", "2027-01-01"),
        ("month", "week", "in the week of 2026-11-30", "monthly answers", "2027-01-01"),
        ("day", "week", "in the week of 2026-11-30", "daily answers", "2026-12-07"),
    ],
)
def test_another_unit_waits_until_what_was_paid_for_is_over(
    new: str, old: str, paid: str, none: str, after: str
) -> None:
    """One answer of December, then thirty-one daily ones, would be more than a month may cost."""
    says = (
        f"unit {old} -> {new}: who answered {paid} under the old form gives no {none} before"
        f" {after}, and so for every {old} answered: no time is paid for twice"
    )

    assert again(under(new), under(old)) == [(says, False)]


def test_a_campaign_that_was_paid_for_as_a_whole_is_over_at_its_end() -> None:
    """A person who answered for life gives no second life."""
    longer = under("month", "2026-12-01", "2027-06-01")
    waits = "who answered under the old form gives no monthly answers before 2027-03-01"
    never = "who answered under the old form answers nothing of the new form"

    assert again(longer, under("user")) == [
        (f"unit user -> month: {waits}: no time is paid for twice", False)
    ]
    assert again(under("day"), under("user")) == [(never, False)]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (under("user", until="2027-06-01"), under("user")),
        (under("user", "2027-01-01", "2027-04-01"), under("user")),
        (under("user"), under("day")),
        (under("user", "2026-12-15"), under("month")),
        (under("month", "2026-12-20", "2026-12-31"), under("day", until="2026-12-20")),
    ],
)
def test_a_campaign_in_which_something_was_paid_for_is_paid_for(new: str, old: str) -> None:
    """Of a unit for life, one day is enough; of a month, one of its days, before `from` even."""
    ((says, well),) = again(new, old)

    assert says.endswith("answers nothing of the new form")
    assert not well


@pytest.mark.parametrize(
    ("new", "old", "paid", "after"),
    [
        (under("month", "2026-12-15"), under("month"), "in 2026-12", "2027-01-01"),
        (under("month", "2026-12-01"), under("month", "2026-12-15"), "in 2026-12", "2027-01-01"),
        (under("month", "2027-02-01", "2027-12-01"), under("month"), "in 2027-02", "2027-03-01"),
        (under("week", "2026-12-03"), under("week"), "in the week of 2026-11-30", "2026-12-07"),
        (under("day", "2026-12-03"), under("day"), "on 2026-12-03", "2026-12-04"),
        (under("day", "2026-12-03"), under("event"), "on 2026-12-03", "2026-12-04"),
        (under("month", until="2027-06-01"), under("month"), "in 2026-12", "2027-01-01"),
    ],
)
def test_the_same_unit_goes_on_with_the_next(new: str, old: str, paid: str, after: str) -> None:
    """However `from` moved: the calendar's month has one account."""
    says = f"who answered {paid} under the old form answers the new form from {after} on"

    assert again(new, old) == [(says, True)]


def test_a_larger_cap_of_the_same_time_leaves_its_difference() -> None:
    """Two answers a day were given: of five, three are left; of an epsilon of 2, one of 1."""
    twice, five = (under("event", "2026-12-01", "2027-01-01", f"per_day = {n}") for n in (2, 5))
    louder = under("month").replace("epsilon = 1", "epsilon = 2")

    who = "who answered on 2026-12-01 under the old form"

    assert again(five, twice) == [(f"{who} has at most 3 answers left of the same day", True)]
    assert again(louder, under("month"))[0][0].endswith("answers the new form from 2027-01-01 on")


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (under("month"), under("month")),
        (under("month", "2027-03-01", "2027-06-01"), under("month")),
        (under("day", "2027-03-01", "2027-06-01"), under("user")),
        (under("month", "2026-09-01", "2026-12-01"), under("day")),
        (campaign("2026-12-01", "2027-03-01", name="another", unit="day"), under("month")),
    ],
)
def test_nothing_is_reported_where_nothing_is_paid_for_twice(new: str, old: str) -> None:
    """The same series, another time, another account."""
    assert again(new, old) == []


def test_a_renamed_collection_is_paid_for_under_its_old_name() -> None:
    look = campaign("2026-12-01", "2027-03-01", 'replaces = "theme"', name="look", unit="day")

    assert again(look, under("month"))[0][0].startswith("unit month -> day: who answered")


def test_another_place_to_hold_a_value_is_another_series() -> None:
    """The key is in the canonical form only where the device holds it: either way it is named."""
    running = under("month", "2026-12-01", "2027-03-01", 'takes = "last"')
    process, device = (f'{running}\nheld = "{each}"' for each in ("process", "device"))

    assert changes(device, process)[0][1].startswith("held changed: a new series begins")
    assert changes(process, device)[0][1].startswith("held changed: a new series begins")


def test_without_an_old_file_figures_and_remarks_are_reported() -> None:
    """A first file is checked alike."""
    much = parse_collections(FILE.replace("until = 2027-05-01", "until = 2027-11-01"), lambda _: [])
    told = list(compare(much, None))

    assert all(each.ok for each in told)
    assert "epsilon 1 per event, 1 per day, 12 per user" in told[0].message
    assert "remark on epsilon" in told[1].message


# -- the command -----------------------------------------------------------------------------------


def test_check_exits_by_what_it_found(file: Path, tmp_path: Path) -> None:
    """0 nothing to decide, 1 something, 2 a file that cannot be used."""
    changed, broken = tmp_path / "changed.toml", tmp_path / "broken.toml"
    changed.write_text(FILE.replace("epsilon = 0.5", "epsilon = 2"), encoding="utf-8")
    broken.write_text("app", encoding="utf-8")

    assert run(["check", str(file), "--was", str(file)]) == 0
    assert run(["check", str(changed), "--was", str(file)]) == 1
    assert run(["check", str(broken)]) == 2


def test_a_variable_that_is_no_number_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor does not fall ill itself."""
    monkeypatch.setenv("VEILCOUNT_JITTER", "soon")

    assert run(["doctor"]) == 2
    assert "soon" in capsys.readouterr().err


def test_json_is_for_programs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same findings, as one object."""
    run(["check", str(file), "--json"])
    told = json.loads(capsys.readouterr().out)

    assert told["ok"] is True
    assert {each["subject"] for each in told["results"]} == {"theme", "saved"}


def test_the_doctor_is_a_command(file: Path, tmp_path: Path) -> None:
    """It runs from the base install, tells a line each, and exits 1 with something to do."""
    command = [sys.executable, "-m", "veilcount_client", "doctor", "--collections", str(file)]
    run = subprocess.run(
        [*command, "--url", CLOSED, "--state-dir", str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 1
    assert "fix   aggregator:" in run.stdout
    assert "ok    definitions: theme, saved" in run.stdout
    assert run.stderr == ""


def test_all_well_exits_with_nothing(
    file: Path,
    settings: ClientSettings,
    serve: Callable[[App], str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """An app that was started, a person who consented, an aggregator that answers."""
    today = datetime.now(UTC).date()
    file.write_text(
        FILE.replace("2026-11-01", f"{today}").replace("2027-05-01", f"{today.year + 2}-01-01"),
        encoding="utf-8",
    )
    with client(settings) as app:
        app.consent(True)
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    with world(tmp_path, now=NOW) as aggregator:
        monkeypatch.setenv("VEILCOUNT_URL", serve(aggregator.app))

        assert run(["doctor", "--collections", str(file), "--state-dir", str(settings.state)]) == 0
