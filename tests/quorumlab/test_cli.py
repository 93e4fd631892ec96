"""What the command says of a command line that it cannot obey."""

import pytest

from quorumlab.cli import main


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
