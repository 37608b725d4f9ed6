"""The wrong lines: each differs from the source in one operator, constant, condition or return."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

Operators = dict[type[ast.AST], type[ast.AST]]


def both_ways(*pairs: tuple[type[ast.AST], type[ast.AST]]) -> Operators:
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


COMPARISONS = both_ways(
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)
) | both_ways((ast.In, ast.NotIn))
ARITHMETIC = both_ways(
    (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.LShift, ast.RShift), (ast.BitAnd, ast.BitOr)
) | {ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitXor: ast.BitOr}
FUNCTIONS = {"min": "max", "max": "min", "all": "any", "any": "all"}


@dataclass(frozen=True)
class Mutant:
    """A source with one wrong line."""

    line: int
    source: str
    diff: str


def mutants(source: str) -> list[Mutant]:
    """Return the source with each fault that the operators below make, in order of lines."""
    found: dict[str, Mutant] = {}
    for node, text in _faults(ast.parse(source)):
        mutated = _replaced(source, node, text)
        found.setdefault(mutated, Mutant(node.lineno, mutated, _diff(source, mutated)))
    found.pop(source, None)
    return sorted(found.values(), key=lambda mutant: mutant.line)


Place = ast.expr | ast.stmt


def _faults(node: ast.AST, *, words: bool = True) -> Iterator[tuple[Place, str]]:
    """Yield each place and what stands there instead; words of a refusal are for people."""
    words = words and not isinstance(node, ast.Raise)
    if isinstance(node, ast.expr):
        for text in _of_expression(node, words=words):
            yield node, text if text.isalnum() else f"({text})"
    if isinstance(node, ast.stmt):
        for place, text in _of_statement(node):
            yield place, text
    for child in _children(node):
        yield from _faults(child, words=words)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs: no annotation, docstring, decorator, f-string or __slots__."""
    if isinstance(node, ast.JoinedStr) or _is_docstring(node) or _names_slots(node):
        return
    for name, value in ast.iter_fields(node):
        if name not in {"annotation", "returns", "decorator_list"}:
            children = value if isinstance(value, list) else [value]
            yield from (child for child in children if isinstance(child, ast.AST))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _names_slots(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__"


def _of_expression(node: ast.expr, *, words: bool) -> Iterator[str]:
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                ops = [*node.ops]
                ops[place] = COMPARISONS[type(operator)]()  # type: ignore[call-overload]
                yield ast.unparse(ast.Compare(node.left, ops, node.comparators))
        case ast.BinOp(left, operator, right):
            swapped = ARITHMETIC[type(operator)]()
            yield ast.unparse(ast.BinOp(left, swapped, right))  # type: ignore[arg-type]
        case ast.UnaryOp(operand=operand):
            yield ast.unparse(operand)
        case ast.BoolOp(operator, values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield ast.unparse(ast.BoolOp(other, values))
        case ast.IfExp(_, body, orelse):
            yield from (ast.unparse(body), ast.unparse(orelse))
        case ast.Constant(value=value) if words or not isinstance(value, str):
            yield from _of_constant(value)
        case ast.Name(name) if name in FUNCTIONS:
            yield FUNCTIONS[name]


def _of_constant(value: object) -> Iterator[str]:
    match value:
        case bool():
            yield str(not value)
        case int():
            yield from (str(value + 1), str(value - 1))
        case str():
            yield repr(value + "X")


def _of_statement(node: ast.stmt) -> Iterator[tuple[Place, str]]:
    match node:
        case ast.If(test):
            yield from ((test, "True"), (test, "False"))
        case ast.While(ast.Compare() | ast.UnaryOp() as test):
            yield test, "False"
        case ast.Return(ast.expr()):
            yield node, "return None"
        case ast.Expr(ast.Call()):
            yield node, "pass"
        case ast.AugAssign(target, operator, value):
            swapped = ARITHMETIC[type(operator)]()
            yield node, ast.unparse(ast.AugAssign(target, swapped, value))  # type: ignore[arg-type]


def _replaced(source: str, node: Place, text: str) -> str:
    """Return the source with another text in the node's place; columns count bytes."""
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    after = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
    return (before + text.encode() + after).decode()


def _diff(one: str, two: str) -> str:
    lines = difflib.unified_diff(one.splitlines(), two.splitlines(), lineterm="", n=0)
    return "\n".join(f"    {line}" for line in list(lines)[3:])
