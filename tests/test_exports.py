"""If a module has `__all__`, it lists every name that another module imports.

The sources are searched, not parsed: that would take seconds.
"""

import re
from ast import literal_eval
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHIPPED = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark", "quorumlab")
IMPORT = re.compile(r"^ *from ([\w.]+) import (\([^)]*\)|.+)", re.MULTILINE)
IMPORTED = re.compile(r"(\w+)(?: as \w+)?")
DEFINED = re.compile(r"^(?:(?:async )?def |class )?(\w+)(?=\(|\[|:| =)", re.MULTILINE)
LISTED = re.compile(r"^__all__ = (\[[^]]*\])", re.MULTILINE)


def test_names_that_others_import_are_listed() -> None:
    assert not unlisted({module_of(path): path.read_text() for path in shipped_files()})


@pytest.mark.parametrize("definition", ["def two():", "class two(One):", "two: int = 2", "two = 2"])
@pytest.mark.parametrize("imported", ["two", "one, two as due", "(\n    one,  # (1)\n    two,\n)"])
def test_unlisted_name_is_seen(definition: str, imported: str) -> None:
    a = f'__all__ = ["one"]\n\none = 1\n{definition}\n'
    assert unlisted({"a": a, "b": f"if one:\n    from a import {imported}\n"}) == {"a": {"two"}}


def unlisted(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """By module: what others import of what it defines, and its `__all__` does not list."""
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for source in sources.values():
        for module, names in IMPORT.findall(re.sub("#.*", "", source)):
            taken[module].update(IMPORTED.findall(names))
    missing = {}
    for module, source in sources.items():
        listed = LISTED.search(source)
        if listed is not None:
            defined = set(DEFINED.findall(source))
            missing[module] = taken[module] & defined - set(literal_eval(listed[1]))
    return {module: names for module, names in missing.items() if names}


def shipped_files() -> Iterator[Path]:
    for package in SHIPPED:
        yield from (ROOT / package).rglob("*.py")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
