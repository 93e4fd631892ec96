"""What the command says of a command line that it cannot obey."""

import subprocess
import sys

import pytest

from quorumlab.cli import EXTRAS, main


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("status --colour", "status: unknown --colour: see `quorumlab status --help`"),
        ("topics list --al", "topics list: unknown --al: see `quorumlab topics list --help`"),
        (
            "inspect . --depth 2",
            "inspect summary: unknown --depth 2: see `quorumlab inspect summary --help`",
        ),
    ],
)
def test_an_unknown_option_points_to_the_verb_that_has_options(
    given: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(given.split()) == 2
    assert capsys.readouterr().err == f"quorumlab: {told}\n"


def test_without_the_extras_every_verb_has_its_help_and_says_what_it_lacks() -> None:
    """As after `pip install -e .`: a module that is None is not there for import."""
    bare = f"""
import sys
sys.modules |= dict.fromkeys({[*EXTRAS]})
from quorumlab.cli import main
sys.exit(main(["--help"]) or main(["demo"]))
"""
    done = subprocess.run([sys.executable, "-c", bare], capture_output=True, text=True, check=False)
    install = "`pip install -e '.[demo]'` in the clone"
    assert (done.returncode, done.stderr) == (
        1,
        f"quorumlab: confluent_kafka is missing: {install}\n",
    )
