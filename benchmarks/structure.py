"""The structure of the packages in numbers: lines, names used twice, layers, imports and cycles.

A child of a package is a module or a folder that stands directly in it. Its layer is one above the
highest child that it imports: a package has as many layers as its longest chain of imports. Imports
for type checkers count like any other.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

from benchmarks.figures import print_figure

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark", "quorumlab")
LOOKED_AT = ("wire", "quorum", "quorum.raft", "controller", "broker", "jepsen_like.sim")
SHORT_LINES = 40

Imports = Mapping[str, set[str]]  # by child: the children that it imports


def main() -> None:
    lines = {
        path: path.read_text().count("\n")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    print_figure("lines of Python", sum(lines.values()), "lines", modules=len(lines))
    for package in PACKAGES:
        own = [count for path, count in lines.items() if path.is_relative_to(ROOT / package)]
        print_figure(f"lines of {package}", sum(own), "lines", modules=len(own))
    names = Counter(path.stem for path in lines if path.stem != "__init__")
    shared = sum(times for times in names.values() if times > 1)
    print_figure("module names used more than once", shared, "modules", of=names.total())
    short = sum(count < SHORT_LINES for path, count in lines.items() if path.stem != "__init__")
    print_figure(f"modules under {SHORT_LINES} lines", short, "modules")
    graph = import_graph(*PACKAGES)
    for package in LOOKED_AT:
        imports = imports_within(graph, package)
        cycle = cycle_in(imports)
        print_figure(
            f"layers of {package}",
            0 if cycle else layers_of(imports),
            "layers",
            children=len(imports),
            imports=sum(map(len, imports.values())),
            cycle=cycle,
        )


def import_graph(*packages: str) -> grimp.ImportGraph:
    return grimp.build_graph(*packages, exclude_type_checking_imports=False, cache_dir=None)


def imports_within(graph: grimp.ImportGraph, package: str) -> Imports:
    imports: dict[str, set[str]] = {child: set() for child in graph.find_children(package)}
    for module in graph.find_descendants(package):
        child = _child(module, package)
        for imported in graph.find_modules_directly_imported_by(module):
            other = _child(imported, package)
            if other in imports and other != child:
                imports[child].add(other)
    return imports


def cycle_in(imports: Imports) -> list[str]:
    """One cycle of imports; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def layers_of(imports: Imports) -> int:
    @cache
    def layer(child: str) -> int:
        return 1 + max(map(layer, imports[child]), default=0)

    return max(map(layer, imports))


def _child(module: str, package: str) -> str:
    depth = package.count(".") + 2
    return ".".join(module.split(".")[:depth])
