"""The shape of the project: who imports whom, which files are pure, how big they are."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.layers import LayersContract

from benchmarks.structure import PACKAGES, cycle_in, import_graph, imports_within, layers_of

ROOT = Path(__file__).parent.parent
LINES_MAX = 500
FUNCTION_LINES_MAX = 70
# The longest chain of imports between the children of a package. Lower a number that has fallen.
LAYERS = {
    "wire": 11,
    "wire.zk": 5,
    "quorum": 4,
    "quorum.core": 5,
    "quorum.log.files": 9,
    "quorum.node": 3,
    "quorum.raft": 7,
    "controller": 5,
    "broker": 7,
    "jepsen_like.sim": 7,
}

# Files that may do I/O. Everything else in the packages below is a core: data in, data out.
EDGES = {
    "wire/tcp_authentication.py",
    "wire/tcp_client.py",
    "wire/tcp_connection.py",
    "wire/tcp_server.py",
    "wire/tls_hello.py",
    "wire/http.py",
    "wire/security/tls.py",
    "wire/zk/kazoo_client.py",
    "wire/zk/kazoo_session.py",
    "quorum/node/directories.py",
    "quorum/log/files/cleaning_round.py",
    "quorum/log/files/disk.py",
    "quorum/node/driver.py",
    "quorum/node/listening.py",
    "quorum/raftos/library.py",
    "quorum/log/files/file_storage.py",
    "quorum/log/files/log_directory.py",
    "quorum/log/files/offset_checkpoint.py",
    "quorum/log/files/snapshot_files.py",
    "quorum/log/files/system.py",
    "quorum/log/files/threads.py",
    "jepsen_like/installation.py",
    "jepsen_like/python_children.py",
    "jepsen_like/sim/runs/command.py",
    "jepsen_like/sim/runs/sweep.py",
    "jepsen_like/sim/runs/workers.py",
}
EDGE_FOLDERS = ("jepsen_like/real/", "spark/", "quorumlab/")
IMPURE = {
    "asyncio",
    "concurrent",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
# The names of an impure module that only build or name values.
PURE_NAMES = {
    ("random", "Random"),
    ("uuid", "UUID"),
    ("io", "BytesIO"),
}


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_core(path: Path) -> bool:
    name = relative(path)
    return name not in EDGES and not name.startswith(EDGE_FOLDERS)


def impure_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in IMPURE:
                    yield f"line {node.lineno}: import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            module = node.module.split(".")[0]
            for alias in node.names:
                if module in IMPURE and (module, alias.name) not in PURE_NAMES:
                    yield f"line {node.lineno}: from {node.module} import {alias.name}"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def impurities(text: str, tree: ast.Module) -> list[str]:
    return list(impure_imports(tree))


def lengths(text: str, tree: ast.Module) -> list[str]:
    """A file that is too long, and functions that are."""
    lines = text.count("\n")
    found = [f"{lines} lines"] if lines > LINES_MAX else []
    for node in functions(tree):
        assert node.end_lineno is not None
        if node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX:
            found.append(f"{node.name}: {node.end_lineno - node.lineno + 1} lines")
    return found


def false_exports(text: str, tree: ast.Module) -> list[str]:
    """What `__all__` names twice, or without being there."""
    exported = next(
        (
            [element.value for element in node.value.elts if isinstance(element, ast.Constant)]
            for node in tree.body
            if isinstance(node, ast.Assign)
            and [getattr(target, "id", None) for target in node.targets] == ["__all__"]
            and isinstance(node.value, ast.List)
        ),
        [],
    )
    defined = top_level_names(tree)
    return [str(name) for name in exported if name not in defined or exported.count(name) > 1]


RULES = (lengths, false_exports, impurities)


@cache
def faults() -> dict[str, dict[str, list[str]]]:
    """By rule and file. Every file is parsed once."""
    found: dict[str, dict[str, list[str]]] = {rule.__name__: {} for rule in RULES}
    for path in sources():
        text = path.read_text()
        tree = ast.parse(text)
        for rule in RULES:
            if rule is not impurities or is_core(path):
                found[rule.__name__][relative(path)] = rule(text, tree)
    return found


@pytest.mark.parametrize("rule", [rule.__name__ for rule in RULES])
def test_every_file_keeps_the_rule(rule: str) -> None:
    looked_at = faults()[rule]
    assert len(looked_at) > 300, "the rule looks at hardly any file"
    assert {path: found for path, found in looked_at.items() if found} == {}


def test_python_children_are_started_in_one_way() -> None:
    """A `python -m` of one's own looks into the user's current directory first."""
    asks = {relative(path) for path in sources() if "sys.executable" in path.read_text()}
    assert asks == {"jepsen_like/python_children.py", "spark/session.py"}


def test_every_edge_exists() -> None:
    missing = [name for name in EDGES if not (ROOT / name).exists()]
    assert missing == [], "an edge that is gone must leave the list of those that may do I/O"


def top_level_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Assign():
                for target in node.targets:
                    each = target.elts if isinstance(target, ast.Tuple) else [target]
                    names |= {name.id for name in each if isinstance(name, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Import() | ast.ImportFrom():
                names |= {alias.asname or alias.name for alias in node.names}
            case _:
                pass
    return names


def test_packages_import_downwards_only() -> None:
    """In a process of its own: import-linter silences the loggers of the one it runs in."""
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
    ]
    linted = subprocess.run(
        [*command, "--config", "pyproject.toml", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert linted.returncode == 0, linted.stdout


def layers_contracts() -> list[dict[str, Any]]:
    contracts = read_configuration(str(ROOT / "pyproject.toml"))["contracts_options"]
    return [each for each in contracts if each["type"] == "layers"]


@pytest.mark.parametrize("contract", layers_contracts(), ids=lambda each: str(each["name"]))
def test_planted_import_breaks_the_contract(contract: dict[str, Any]) -> None:
    """From each line of the contract to the one above it, and to its neighbour in its own line."""
    container = "".join(f"{name}." for name in contract.get("containers", []))
    lines = [[container + name for name in line.split(" | ")] for line in contract["layers"]]
    upwards = [(lower[0], upper[0]) for upper, lower in pairwise(lines)]
    sideways = [(left, right) for line in lines for right, left in pairwise(line)]
    checked = LayersContract(contract["name"], {"root_packages": [*PACKAGES]}, contract)
    graph = shipped_imports()
    assert checked.check(graph, verbose=False).kept
    for importer, imported in upwards + sideways:
        graph.add_import(importer=importer, imported=imported)
        is_kept = checked.check(graph, verbose=False).kept
        graph.remove_import(importer=importer, imported=imported)
        assert not is_kept, f"{importer} may import {imported}"


@pytest.mark.parametrize("package", LAYERS)
def test_no_package_has_another_layer(package: str) -> None:
    assert layers_of(imports_within(shipped_imports(), package)) == LAYERS[package]


def test_planted_layer_is_seen() -> None:
    imports = {**imports_within(shipped_imports(), "broker"), "broker.planted": {"broker.broker"}}
    assert layers_of(imports) == LAYERS["broker"] + 1


@cache
def shipped_imports() -> grimp.ImportGraph:
    """A test that changes it changes it back."""
    return import_graph(*PACKAGES)


def cycles(*packages: str) -> list[list[str]]:
    """Modules that import each other, and children of a package that do by what is in them: the
    first of them again at the end.

    Imports under TYPE_CHECKING and within functions count.
    """
    graph = import_graph(*packages)
    modules = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    folders = [imports_within(graph, name) for name in sorted(graph.modules)]
    return [found for imports in (modules, *folders) if (found := cycle_in(imports))]


def test_neither_modules_nor_folders_import_in_cycles() -> None:
    assert cycles(*PACKAGES) == []


@pytest.mark.parametrize(
    "closing",
    [
        "{planted}",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {planted}",
        "def later():\n    {planted}",
    ],
    ids=["plain", "types", "function"],
)
@pytest.mark.parametrize(
    ("imported", "children"),
    [("asking", ["one.asking", "two.asking"]), ("asked", ["one", "two"])],
    ids=["modules", "folders"],
)
def test_planted_cycle_is_seen(
    closing: str,
    imported: str,
    children: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = tmp_path.name
    back = closing.format(planted=f"import {name}.one.{imported}")
    for folder, asking in {"one": f"import {name}.two.{imported}", "two": back}.items():
        (tmp_path / name / folder).mkdir(parents=True)
        for module, text in {"__init__": "", "asked": "", "asking": asking}.items():
            (tmp_path / name / folder / f"{module}.py").write_text(f"{text}\n")
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert {f"{name}.{child}" for child in children} in map(set, cycles(name))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_two_modules_of_a_package_have_one_name(package: str) -> None:
    files = (path for path in (ROOT / package).rglob("*.py") if not path.stem.startswith("__"))
    counted = Counter(path.stem for path in files)
    found = {name: count for name, count in counted.items() if count > 1}
    assert found == {}, "give the new module a name of its own"


@pytest.mark.parametrize(
    ("rule", "text", "found"),
    [
        (impurities, "import time\nfrom random import random\nfrom uuid import UUID, uuid4\n", 3),
        (lengths, "def f():\n" + "    pass\n" * FUNCTION_LINES_MAX, 1),
        (lengths, "pass\n" * (LINES_MAX + 1), 1),
        (false_exports, "__all__ = ['a', 'b', 'b']\nb = 1\n", 3),
    ],
)
def test_planted_fault_is_seen(
    rule: Callable[[str, ast.Module], list[str]], text: str, found: int
) -> None:
    assert len(rule(text, ast.parse(text))) == found
