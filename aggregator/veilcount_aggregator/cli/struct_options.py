"""Click options from a query Struct: one option for each parameter that it declares.

    @click.command("budget")
    @click.argument("name")
    @struct_options(BudgetQuery)
    @query_source.source_options
    def command(*, name: str, params: dict[str, list[str]], **place: Any) -> None:
        query = BudgetQuery.parse(params)

A command gets all of them as one argument, `params`: what a server takes as a query string and
`QueryParams.parse` reads. Names, choices, help and placeholders are those of the field
(`queries.query_params`); bounds are checked by `parse`, in the same words as over HTTP. `omit`
names parameters that the command takes in another way, such as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

import click

from ..queries import query_params
from ..queries.query_params import Param, QueryParams

Command = Callable[..., Any]


def struct_options(
    query: type[QueryParams], *, omit: Collection[str] = ()
) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of a query and passes them on as `params`."""
    declared = [param for param in query_params.params(query) if param.name not in omit]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*args: Any, **options: Any) -> Any:
            words = {param.name: _words(options.pop(_key(param))) for param in declared}
            params = {name: value for name, value in words.items() if value}
            return command(*args, params=params, **options)

        for param in reversed(declared):
            _option(param)(run)
        return run

    return decorate


def _option(param: Param) -> Callable[[Command], Command]:
    flag = param.kind is bool
    return click.option(
        f"--{param.name}/--no-{param.name}" if flag else f"--{param.name}",
        _key(param),
        type=click.Choice([str(each) for each in param.choices]) if param.choices else None,
        default=str(param.default) if param.choices else None,
        show_default=bool(param.choices),
        multiple=param.repeated,
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
