"""Looks up the annotations of a callable's parameters, by its name alone.

Two arguments of different types cannot be swapped: the strict types of `make check` see that.
"""

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

__all__ = ["are_alike"]

_PACKAGES = ("broker", "controller", "jepsen_like", "quorum", "spark", "wire")
Signature = dict[int | str, str]  # by place and by name


def are_alike(root: Path, call: ast.Call, one: int | str, other: int | str) -> bool:
    """Whether some callable of that name takes both, and as the same type."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    known = _signatures(root).get(name, ())
    return any(one in each and each[one] == each.get(other) for each in known)


@cache
def _signatures(root: Path) -> dict[str, list[Signature]]:
    found: dict[str, list[Signature]] = {}
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    found.setdefault(node.name, []).append(_signature(list(_parameters(node))))
                elif isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(_signature(list(_of_class(node))))
    return found


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if each.annotation is not None:
            yield each.arg, _type(each.annotation)


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Its fields, or what its `__init__` takes."""
    for each in node.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, _type(annotation)
            case ast.FunctionDef(name="__init__"):
                yield from _parameters(each)
            case _:
                pass


def _type(annotation: ast.expr) -> str:
    return ast.unparse(annotation).strip("'\"").removesuffix(" | None")


def _signature(parameters: Sequence[tuple[str, str]]) -> Signature:
    found: Signature = dict(parameters)
    found.update((place, kind) for place, (_name, kind) in enumerate(parameters))
    return found
