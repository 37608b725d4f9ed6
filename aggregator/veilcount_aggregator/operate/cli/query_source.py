"""Queries of commands: their options, and their source, a store or a running server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar

import click
import requests
from click.core import ParameterSource

from veilcount_analysis import query_params
from veilcount_analysis.query_params import Param, QueryParams
from veilcount_analysis.series.series import utc_day
from veilcount_analysis.text.view_parts import Part
from veilcount_reader.http_client import AggregatorClient, collection_path, key_url_problem
from veilcount_serving.errors import SettingsError

from ...errors import StoreUnavailable
from ...queries import CollectionNotFound, CollectionQuery, Snapshot, plain
from ...records.definitions import load_catalog
from ...settings import PREFIX
from . import options
from .development_stores import missing_store
from .main import NegativeResult
from .options import Command
from .output import print_json, print_parts

SECONDS = 60.0
UNAUTHORIZED, CONFLICT, SERVER_ERROR = 401, 409, 500

Q = TypeVar("Q", bound=QueryParams)
R = TypeVar("R")

Document = dict[str, Any]
Parameters = Mapping[str, Sequence[str]]

url_option = click.option(
    "--url",
    "server",
    envvar=f"{PREFIX}URL",
    metavar="URL",
    help=f"Address of a running server (default: {PREFIX}URL).",
)
key_option = click.option(
    "--key",
    envvar=f"{PREFIX}KEY",
    default="",
    metavar="KEY",
    help=f"API key for the server; {PREFIX}KEY keeps it out of the shell's history.",
)


def source_options(command: Command) -> Command:
    """Add --store, --url and --key."""
    return options.store(url_option(key_option(command)))


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, and the API key for it. Errors name the fix."""

    url: str
    key: str = field(repr=False)

    def __post_init__(self) -> None:
        """Reject an address to which no key can be sent, and a missing key."""
        if problem := key_url_problem(self.url):
            raise SettingsError("--url", self.url, problem)
        if not self.key:
            raise SettingsError("--key", "", f"give an analyst's key, here or as {PREFIX}KEY")

    def get(self, name: str, what: str, parameters: Parameters) -> Document:
        """Return the result of a query of a collection."""
        return self.send("GET", collection_path(name, what), params=dict(parameters))

    def post(self, name: str, what: str, body: Mapping[str, object]) -> Document:
        """Return the result of a request that changes a collection."""
        return self.send("POST", collection_path(name, what), json=dict(body))

    def send(self, method: str, path: str, **arguments: Any) -> Document:
        """Return the JSON document of a response, or raise what went wrong."""
        try:
            with AggregatorClient(self.url, self.key, SECONDS) as client:
                response = client.request(method, path, **arguments)
            document = response.json()
        except requests.JSONDecodeError as error:
            raise StoreUnavailable(f"the server at {self.url} is not an aggregator") from error
        except requests.RequestException as error:
            raise StoreUnavailable(
                f"no aggregator responds at {self.url}: is the address right, and is"
                " `veilcount serve` running?"
            ) from error
        if response.ok and isinstance(document, dict):
            return document
        raise _http_error(response.status_code, document if isinstance(document, dict) else {})


def _http_error(status: int, problem: Mapping[str, Any]) -> Exception:
    why = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    if status >= SERVER_ERROR:
        return StoreUnavailable(why)
    if status == CONFLICT:
        return NegativeResult(why)
    if status == UNAUTHORIZED:
        why = f"{why}: `veilcount keys create --role analyst` creates a key"
    return click.ClickException(why)


def server_of(url: str | None, server: str | None, key: str) -> Server | None:
    """Return the server to query, or None for the store; options win over the environment."""
    origin = click.get_current_context().get_parameter_source
    store_typed = origin("url") is ParameterSource.COMMANDLINE
    server_typed = origin("server") is ParameterSource.COMMANDLINE
    if store_typed and server_typed:
        raise click.UsageError("give --store or --url, not both")
    if server and not store_typed:
        return Server(server, key)
    if not url:
        fix = f"give a store's URL or a server's --url, here or as {PREFIX}STORE or {PREFIX}URL"
        raise missing_store(fix)
    return None


def query(
    name: str,
    what: str,
    params: Parameters,
    compute: Callable[[Snapshot], object],
    *,
    url: str | None,
    server: str | None,
    key: str,
) -> Document:
    """Return a query's result as JSON: of the server, or computed here on a snapshot."""
    remote = server_of(url, server, key)
    if remote is not None:
        if "candidates" in params:  # more than an address can hold
            rest = {key: words for key, words in params.items() if key != "candidates"}
            return remote.post(
                name, what, {"candidates": list(params["candidates"]), "parameters": rest}
            )
        return remote.get(name, what, params)
    with opened_snapshot(url) as snapshot:
        document: Document = plain(compute(snapshot))
        return document


def declared_query(
    declared: CollectionQuery[Q, R], *, arguments: Sequence[str] = ()
) -> Callable[[Callable[[R], Iterable[Part]]], Callable[..., None]]:
    """Return a decorator that gives a query's command its name, options, call and JSON.

        @declared_query(COMPARE)
        def command(result: CompareResult) -> Iterable[Part]:
            return ComparisonView.from_result(result).parts

    `arguments` are parameters that are no options: words that are separated by commas.
    """

    def decorate(show: Callable[[R], Iterable[Part]]) -> Callable[..., None]:
        def run(
            *, name: str, params: dict[str, list[str]], as_json: bool, **source_or_words: Any
        ) -> None:
            for argument in arguments:
                params[argument] = source_or_words.pop(argument).split(",")
            document = answer(declared, name, params, **source_or_words)
            if as_json:
                print_json(document)
            else:
                print_parts(show(declared.decode(document)))

        run.__doc__ = show.__doc__
        command = source_options(options.as_json(run))
        command = struct_options(declared.takes, omit=arguments)(command)
        for argument in reversed(arguments):
            command = click.argument(argument)(command)
        return options.name_in_store(command)

    return decorate


def answer(
    declared: CollectionQuery[Q, R], name: str, params: Parameters, **source: Any
) -> Document:
    """Return the JSON of a declared query."""
    compute = partial(declared.run, collection=name, parameters=params)
    return query(name, declared.name, params, compute, **source)


@contextmanager
def opened_snapshot(url: str | None) -> Iterator[Snapshot]:
    """Open a store for one query."""
    with options.opened(url) as store:
        held = Snapshot(load_catalog(store), store, utc_day(options.now()))
        try:
            yield held
        except CollectionNotFound as error:
            raise click.BadParameter(_suggestion(error, held), param_hint="NAME") from error


def _suggestion(error: CollectionNotFound, held: Snapshot) -> str:
    if error.near:
        return str(error)
    known = ", ".join(held.catalog.by_name)
    listed = f"there are {known}" if known else "there is none: `veilcount collections push FILE`"
    return f"{error}: {listed}"


def struct_options(
    *queries: type[QueryParams], omit: Collection[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds one option for each parameter that the queries declare.

        @struct_options(BudgetQuery)
        def command(*, name: str, params: dict[str, list[str]], **source: Any) -> None:
            query = BudgetQuery.parse(params)

    `params` is what a server takes as a query string. Names, choices, help and placeholders are
    those of the field (`veilcount_analysis.query_params`); bounds are checked by `parse`, in the
    same words as over HTTP. `omit` names parameters that the command takes in another way, such as
    arguments.
    """
    params = {param.name: param for query in queries for param in query_params.params(query)}
    declared = [param for param in params.values() if param.name not in omit]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*args: Any, **options: Any) -> Any:
            words = {param.name: _words(options.pop(_key(param))) for param in declared}
            params = {name: value for name, value in words.items() if value}
            return command(*args, params=params, **options)

        for param in reversed(declared):
            _parameter_option(param)(run)
        return run

    return decorate


def _parameter_option(param: Param) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    flag = param.kind is bool
    return click.option(
        f"--{param.name}/--no-{param.name}" if flag else f"--{param.name}",
        _key(param),
        type=click.Choice([str(choice) for choice in param.choices]) if param.choices else None,
        default=str(param.default) if param.choices else None,
        show_default=bool(param.choices),
        multiple=param.repeated,
        required=param.required,
        metavar=param.extra.get("metavar"),
        help=param.description,
    )


def _key(param: Param) -> str:
    """Return the keyword of a command's function: a parameter may be called `from`."""
    return f"{param.name}_"


def _words(value: object) -> list[str]:
    if isinstance(value, tuple):
        return [str(word) for word in value]
    return [] if value is None else [str(value)]
