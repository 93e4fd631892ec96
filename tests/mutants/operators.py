"""Small changes of a module's functions, each a bug that somebody could have written.

    comparison   < for <=, == for !=, in for not in, is for is not
    off by one   a number, or the bound of a slice, is one more
    guard        a condition that is asked, and whose answer does not matter
    statement    a call, an assignment to an attribute or item, an exit is left out
    arguments    two neighbours of one type are swapped

Only bodies of functions are changed. Assertions stay: they say what cannot be, so that leaving one
out changes nothing in a program that is right. So do texts, and what is raised.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType
from typing import Any

from tests.mutants.signatures import are_alike

__all__ = ["Mutant", "mutants_of", "mutated"]

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change. `name` stays the same wherever the rest of the file goes."""

    name: str
    file: str
    line: int
    lines: tuple[int, ...]  # a test that runs one of them may see it
    function: str
    operator: str
    before: str
    after: str

    def __str__(self) -> str:
        change = f"`{self.before}` -> `{self.after}`" if self.after else f"without `{self.before}`"
        return f"{self.name} {self.file}:{self.line} {self.function}: {change}"


@dataclass(slots=True)
class _Edit:
    """A field of a node, or a place in a list, and what else may stand there."""

    owner: Any
    key: Any
    other: Any

    def swap(self) -> None:
        if isinstance(self.owner, list):
            self.owner[self.key], self.other = self.other, self.owner[self.key]
        else:
            now = getattr(self.owner, self.key)
            setattr(self.owner, self.key, self.other)
            self.other = now


@dataclass(slots=True)
class _Site:
    operator: str
    shown: ast.AST
    edits: tuple[_Edit, ...]
    lines: tuple[int, ...] = ()

    def swap(self) -> None:
        for edit in self.edits:
            edit.swap()


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """All of a file, in its order."""
    found = []
    same: Counter[str] = Counter()
    for function, site in _sites(root, ast.parse((root / file).read_text())):
        before = _text(site.shown)
        site.swap()
        after = "" if site.operator == "statement" else _text(site.shown)
        site.swap()
        what = "\0".join((file, function, site.operator, before, after))
        same[what] += 1
        found.append(
            Mutant(
                name=hashlib.sha256(f"{what}\0{same[what]}".encode()).hexdigest()[:10],
                file=file,
                line=site.lines[-1],
                lines=site.lines,
                function=function,
                operator=site.operator,
                before=before,
                after=after,
            )
        )
    return found


def mutated(root: Path, mutant: Mutant) -> CodeType:
    """The code of the whole module, changed."""
    path = root / mutant.file
    tree = ast.parse(path.read_text())
    sites = _sites(root, tree)
    for each, (_function, site) in zip(mutants_of(root, mutant.file), sites, strict=True):
        if each.name == mutant.name:
            site.swap()
            break
    else:
        raise LookupError(f"{mutant}: the file has changed")
    return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _sites(root: Path, tree: ast.Module) -> Iterator[tuple[str, _Site]]:
    for name, function in _functions(tree, ""):
        for site in _of_block(root, function.body):
            yield name, site


def _functions(node: ast.AST, outer: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield f"{outer}{child.name}", child
            yield from _functions(child, f"{outer}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{outer}{child.name}.")
        elif not isinstance(child, ast.expr):
            yield from _functions(child, outer)


def _of_block(root: Path, statements: list[ast.stmt]) -> Iterator[_Site]:
    for place, statement in enumerate(statements):
        if isinstance(statement, _Function | ast.ClassDef | ast.Assert | ast.Raise):
            continue
        for site in _of_statement(root, statements, place):
            if not site.lines:
                site.lines = (*_heading(statement), getattr(site.shown, "lineno", statement.lineno))
            yield site


def _of_statement(root: Path, statements: list[ast.stmt], place: int) -> Iterator[_Site]:
    statement = statements[place]
    if _can_be_left_out(statement):
        never = ast.If(test=ast.Constant(False), body=[statement], orelse=[])
        ast.copy_location(never, statement)
        yield _Site("statement", statement, (_Edit(statements, place, never),))
    yield from _of_node(root, statement)


def _heading(statement: ast.stmt) -> range:
    """The lines of a statement without those of its blocks."""
    match statement:
        case ast.Match(cases=[first, *_]):
            last = first.pattern.lineno - 1
        case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try():
            last = statement.body[0].lineno - 1
        case _:
            last = statement.end_lineno or statement.lineno
    return range(statement.lineno, max(last, statement.lineno) + 1)


def _of_node(root: Path, node: ast.AST) -> Iterator[_Site]:
    """What can be changed in a node, then in those below it."""
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.Constant() | ast.Slice():
            yield from _one_more(node)
        case ast.BoolOp(values=[*_, last]) if not _is_default(last):
            yield from _operands(node)
        case ast.If() | ast.IfExp() | ast.match_case() | ast.comprehension():
            yield from _guards(node)
        case ast.Call():
            yield from _swapped(root, node)
        case _:
            pass
    yield from _below(root, node)


def _below(root: Path, node: ast.AST) -> Iterator[_Site]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment"):
            continue
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield from _of_block(root, value)
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _of_node(root, child)


def _can_be_left_out(statement: ast.stmt) -> bool:
    """Names stay bound: without that, nothing works, as everybody sees."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return False
        case ast.Expr() | ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Break():
            return True
        case ast.Return(value=None):
            return True
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target, value=ast.expr()):
            return isinstance(target, ast.Attribute | ast.Subscript)
        case _:
            return False


def _guards(node: ast.If | ast.IfExp | ast.match_case | ast.comprehension) -> Iterator[_Site]:
    match node:
        case ast.If(
            body=[*_, ast.Return() | ast.Raise() | ast.Continue() | ast.Break()], orelse=[]
        ):
            yield _guard(node.test, (node, "test"), holds=False)
        case ast.If() | ast.IfExp():
            yield _guard(node.test, (node, "test"), holds=True)
        case ast.match_case(guard=ast.expr() as guard):
            yield _guard(guard, (node, "guard"), holds=True)
        case ast.comprehension(ifs=conditions):
            for place, condition in enumerate(conditions):
                yield _guard(condition, (conditions, place), holds=True)
        case _:
            pass


def _guard(condition: ast.expr, place: tuple[Any, Any], *, holds: bool) -> _Site:
    """The condition is asked all the same: it may bind a name."""
    join = ast.Or() if holds else ast.And()
    other = ast.BoolOp(op=join, values=[condition, ast.Constant(holds)])
    ast.copy_location(other, condition)
    shown = ast.Expr(condition)
    ast.copy_location(shown, condition)
    return _Site("guard", shown, (_Edit(*place, other), _Edit(shown, "value", other)))


def _compared(node: ast.Compare) -> Iterator[_Site]:
    for place, operator in enumerate(node.ops):
        other = _OPPOSITES[type(operator)]()
        yield _Site("comparison", node, (_Edit(node.ops, place, other),))


def _one_more(node: ast.Constant | ast.Slice) -> Iterator[_Site]:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield _Site("off by one", node, (_Edit(node, "value", number + 1),))
        case ast.Slice(lower=lower, upper=upper):
            for name, bound in (("lower", lower), ("upper", upper)):
                if bound is not None and not isinstance(bound, ast.Constant | ast.UnaryOp):
                    more = ast.BinOp(left=bound, op=ast.Add(), right=ast.Constant(1))
                    ast.copy_location(more, bound)
                    yield _Site("off by one", node, (_Edit(node, name, more),))
        case _:
            pass


def _operands(node: ast.BoolOp) -> Iterator[_Site]:
    for place, operand in enumerate(node.values):
        passes = ast.copy_location(ast.Constant(isinstance(node.op, ast.And)), operand)
        yield _Site("guard", node, (_Edit(node.values, place, passes),))


def _is_default(node: ast.expr) -> bool:
    """In `given or ()`: no condition but a value, and a truth in its place fails the types."""
    match node:
        case ast.Tuple() | ast.List() | ast.Dict() | ast.Set():
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name[0].isupper()  # of a class
        case ast.Constant(value=value):
            return not isinstance(value, bool)
        case _:
            return False


def _swapped(root: Path, node: ast.Call) -> Iterator[_Site]:
    values: list[tuple[int | str, Any, Any, ast.expr]] = [
        *((place, node.args, place, value) for place, value in enumerate(node.args)),
        *((each.arg, each, "value", each.value) for each in node.keywords if each.arg),
    ]
    for (one, owner, here, left), (other, its, there, right) in pairwise(values):
        if _text(left) != _text(right) and are_alike(root, node, one, other):
            yield _Site("arguments", node, (_Edit(owner, here, right), _Edit(its, there, left)))
