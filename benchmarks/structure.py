"""The shape of the house in numbers: lines, names used twice, rooms, floors, arrows and circles.

A room is what stands directly in a package: a module, or a folder as a whole. Its floor is one
above the highest room that it imports: the floors of a package are its longest way down. Imports
for type checkers count like any other.
"""

import sys
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

Rooms = Mapping[str, set[str]]  # a room -> those that it imports


def main() -> int:
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
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    for package in LOOKED_AT:
        rooms = rooms_of(graph, package)
        arrows = sum(map(len, rooms.values()))
        circle = circle_in(rooms)
        floors = None if circle else floors_of(rooms)
        print_figure(
            f"floors of {package}",
            floors or 0,
            "floors",
            rooms=len(rooms),
            arrows=arrows,
            circle=circle,
        )
    return 0


def rooms_of(graph: grimp.ImportGraph, package: str) -> Rooms:
    """The rooms of a package and the arrows between them."""
    rooms: dict[str, set[str]] = {room: set() for room in graph.find_children(package)}
    for module in graph.find_descendants(package):
        room = _room(module, package)
        for imported in graph.find_modules_directly_imported_by(module):
            other = _room(imported, package)
            if other in rooms and other != room:
                rooms[room].add(other)
    return rooms


def circle_in(rooms: Rooms) -> list[str]:
    """One circle of imports between rooms; empty if there is none."""
    try:
        TopologicalSorter(rooms).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def floors_of(rooms: Rooms) -> int:
    @cache
    def floor(room: str) -> int:
        return 1 + max(map(floor, rooms[room]), default=0)

    return max(map(floor, rooms))


def _room(module: str, package: str) -> str:
    depth = package.count(".") + 2
    return ".".join(module.split(".")[:depth])


if __name__ == "__main__":
    sys.exit(main())
