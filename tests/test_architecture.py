"""The shape of the project: who imports whom, which files are pure, how big they are."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark", "quorumlab")
LINES_MAX = 500
FUNCTION_LINES_MAX = 70

# Files that may do I/O. Everything else in the packages below is a core: data in, data out.
EDGES = {
    "wire/tcp_client.py",
    "wire/tcp_connection.py",
    "wire/tcp_server.py",
    "wire/http.py",
    "wire/zk/kazoo_client.py",
    "wire/zk/kazoo_session.py",
    "quorum/storage/checkpoint_writes.py",
    "quorum/storage/directories.py",
    "quorum/storage/disk.py",
    "quorum/driver.py",
    "quorum/storage/files.py",
    "quorum/storage/jobs.py",
    "quorum/storage/log_directory.py",
    "quorum/storage/offset_checkpoint.py",
    "quorum/storage/snapshot_files.py",
    "quorum/storage/snapshot_jobs.py",
    "jepsen_like/sim/command.py",
    "jepsen_like/sim/sweep.py",
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


@pytest.mark.parametrize("path", [path for path in sources() if is_core(path)], ids=relative)
def test_core_imports_no_clock_socket_or_global_random(path: Path) -> None:
    assert list(impure_imports(ast.parse(path.read_text()))) == []


def test_every_edge_exists() -> None:
    missing = [name for name in EDGES if not (ROOT / name).exists()]
    assert missing == [], "an edge that is gone must leave the list of those that may do I/O"


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_file_and_its_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LINES_MAX, f"{text.count(chr(10))} lines"
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in functions(ast.parse(text))
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert long == []


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_all_names_what_is_defined(path: Path) -> None:
    tree = ast.parse(path.read_text())
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
    assert len(exported) == len(set(exported))
    assert set(exported) <= top_level_names(tree)


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


def test_a_planted_clock_is_seen() -> None:
    planted = "import time\nfrom random import random\nfrom uuid import UUID, uuid4\n"
    assert len(list(impure_imports(ast.parse(planted)))) == 3
