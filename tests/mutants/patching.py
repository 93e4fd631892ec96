"""A mutant in a process that has imported everything: live functions are given the changed code.

Nothing is imported again and no file is written, so that a fork is all that a mutant costs. What
ran while modules were imported has run on the shipped code.
"""

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutants.operators import Mutant, mutated

__all__ = ["Live", "functions_in_memory"]

Place = tuple[str, int]  # qualified name, first line


def functions_in_memory() -> list[FunctionType]:
    gc.unfreeze()  # what is frozen is not told
    found = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
    gc.freeze()  # forks need not look at it
    return found


class Live:
    """Functions that may be changed."""

    def __init__(self, root: Path, functions: Iterable[FunctionType]) -> None:
        self._root = root
        self._functions: defaultdict[str, list[FunctionType]] = defaultdict(list)
        for each in functions:
            self._functions[each.__code__.co_filename].append(each)

    def apply(self, mutant: Mutant) -> int:
        """For good; says how many functions it has changed."""
        changed = {_place(code): code for code in _codes(mutated(self._root, mutant))}
        count = 0
        for function in self._functions[str(self._root / mutant.file)]:
            code = changed[_place(function.__code__)]
            if code != function.__code__:
                function.__code__ = code
                count += 1
        return count


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
