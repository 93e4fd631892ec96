"""A module's `__all__` names what other modules take from it, if it has one."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHIPPED = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark", "quorumlab")


def test_names_that_others_import_are_listed() -> None:
    trees = {module_of(path): ast.parse(path.read_text()) for path in shipped_files()}
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        for module, name in imported(tree):
            taken[module].add(name)
    missing = {
        module: unlisted
        for module, tree in trees.items()
        if (listed := listed_in(tree)) is not None
        and (unlisted := {each for each in taken[module] & defined(tree) if each not in listed})
    }
    assert not missing


def shipped_files() -> Iterator[Path]:
    for package in SHIPPED:
        yield from (ROOT / package).rglob("*.py")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, each.name) for each in node.names)


def defined(tree: ast.Module) -> set[str]:
    names = {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {each.id for each in targets if isinstance(each, ast.Name)}
    return names


def listed_in(tree: ast.Module) -> set[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets):
            value: set[str] = set(ast.literal_eval(node.value))
            return value
    return None
