"""One JSON line a figure: what every benchmark prints, and nothing else on stdout.

    {"name": "...", "value": 1.0, "unit": "ms", "parameters": {...}, "measured_on": {...}}

`name` says what was measured and stays the same from commit to commit; what may vary (counts,
sizes, versions of others) is in `parameters`.
"""

import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "measured_on", "percentile", "print_figure", "progress", "skip"]

ROOT = Path(__file__).resolve().parent.parent


def print_figure(name: str, value: float, unit: str, **parameters: object) -> None:
    """Four significant digits are more than any of these figures can bear."""
    line = {
        "name": name,
        "value": value if isinstance(value, int) else float(f"{value:.4g}"),
        "unit": unit,
        "parameters": parameters,
        "measured_on": measured_on(),
    }
    print(json.dumps(line), flush=True)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def skip(name: str, reason: str) -> None:
    """Say aloud what was not measured: a missing line could be taken for a forgotten one."""
    progress(f"SKIPPED {name}: {reason}")


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all do not exceed."""
    assert values, "nothing was measured"
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, min(len(ordered), int(rank)) - 1)]


@cache
def measured_on() -> Mapping[str, object]:
    """The machine and the code, as they were when the first figure was printed."""
    return {
        "cpus": os.cpu_count(),
        "cpu": _cpu_model(),
        "python": platform.python_version(),
        "python_build": f"{platform.python_build()[1]}, {platform.python_compiler()}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "load_average": round(os.getloadavg()[0], 1),
        "commit": _commit(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _commit() -> str:
    arguments = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(
            arguments, cwd=ROOT, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
