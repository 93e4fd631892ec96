"""Porcupine, a checker in Go, for comparison: what it says of registers, and how long it takes."""

import shutil
import subprocess
from pathlib import Path

import numpy as np

from benchmarks.figures import ROOT
from jepsen_like.checkers.operations import NEVER
from jepsen_like.checkers.zones import RegisterColumns

__all__ = ["built", "judged", "missing_reason"]

_SOURCE = ROOT / "benchmarks/peers/porcupine"
_BUILD_SECONDS = 300
SECONDS = 20  # then it gives up by itself


def missing_reason() -> str | None:
    return None if shutil.which("go") else "there is no Go on the path"


def built(directory: Path) -> Path:
    """Raises `CalledProcessError` where the module cannot be had."""
    program = directory / "porcupine"
    subprocess.run(
        ["go", "build", "-o", program, "."],
        cwd=_SOURCE,
        check=True,
        capture_output=True,
        timeout=_BUILD_SECONDS,
    )
    return program


def judged(program: Path, columns: RegisterColumns, directory: Path) -> tuple[str, float]:
    """Its verdict (Ok, Illegal, Unknown), and the seconds that it took without reading."""
    accesses = columns.accesses
    ret = np.where(accesses.ret == NEVER, -1, accesses.ret)
    rows = accesses.key, columns.is_write, accesses.value, accesses.call, ret
    path = directory / "history"
    np.stack([column.astype("<i8") for column in rows], axis=1).tofile(path)
    done = subprocess.run(
        [program, path, str(SECONDS)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        return "out of memory" if "memory" in done.stderr else "failed", float("nan")
    verdict, seconds = done.stdout.split()
    return verdict, float(seconds)
