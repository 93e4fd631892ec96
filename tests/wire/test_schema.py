"""What loading a layout does to the process that loads it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_node_does_not_pay_for_hypothesis_though_it_is_installed() -> None:
    script = (
        "import sys; from wire.schema import load_layout; load_layout('vote', 2, 'request');"
        "print('hypothesis' in sys.modules); import hypothesis; print(hypothesis.__name__)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert printed.stdout == "False\nhypothesis\n", printed.stderr
