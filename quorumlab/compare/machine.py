"""On what it was measured: times depend on it, counts do not."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from jepsen_like.installation import ROOT, has_history

__all__ = ["commit", "described"]


def described() -> dict[str, str | int | float]:
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processors": os.cpu_count() or 0,
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "system": platform.system(),
        "load_average": round(os.getloadavg()[0], 1),
        "commit": commit(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def commit() -> str:
    """The commit of this clone; "" for an installed package."""
    if not has_history():
        return ""
    try:
        told = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return told.stdout.strip()
