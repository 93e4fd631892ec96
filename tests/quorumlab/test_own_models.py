"""A model of somebody's own judges a history; the example is one; mistakes are told."""

import json
from pathlib import Path

import pytest

from quorumlab.cli import main

BANK = Path(__file__).parents[2] / "examples/bank_account.py"
EXAMPLE = f"{BANK}:ACCOUNT"


def written(path: Path, *done: tuple[str, object, object]) -> str:
    lines = []
    for number, (f, asked, seen) in enumerate(done):
        for kind, value in (("invoke", asked), ("ok", seen)):
            lines.append({"type": kind, "process": number, "f": f, "value": value})
    file = path / "history.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return str(file)


def test_example_accepts_what_an_account_does(tmp_path: Path) -> None:
    history = written(
        tmp_path, ("deposit", 5, 5), ("withdraw", 3, 3), ("balance", None, 2), ("withdraw", 2, 2)
    )
    assert main(["check", history, "--model", EXAMPLE]) == 0


def test_example_finds_an_account_that_was_overdrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = written(
        tmp_path,
        ("deposit", ["anna", 5], None),
        ("withdraw", ["anna", 3], None),
        ("deposit", ["bert", 9], None),
        ("withdraw", ["anna", 3], None),
    )
    assert main(["check", history, "--model", EXAMPLE, "--format", "json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["objects"] == {"anna": "violated", "bert": "valid"}
    (finding,) = told["findings"]
    assert finding["rule"] == "not-linearizable"


MODEL = "import jepsen_like.checkers.models as m; M = m.Model"


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        (None, "M", "there is no file"),
        ("x = 1", "M", "it has no Model at all"),
        ("import nothing_like_that", "M", "does not run: ModuleNotFoundError"),
        ("x = (", "M", "does not run: SyntaxError"),
        ("raise SystemExit(0)", "M", "does not run: SystemExit: 0"),
        (f"{MODEL}(initial=0, step=lambda state, each: state[0], reads=())", "M", "TypeError"),
        (f"{MODEL}(initial=0, step=lambda state, each: [], reads=())", "M", "unhashable"),
        (BANK.read_text(), "account", "it has ACCOUNT"),
        (BANK.read_text(), "", "nothing is no Model"),
    ],
)
def test_model_that_is_none_says_why(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    name: str,
    says: str,
) -> None:
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_text(content)
    history = written(tmp_path, ("deposit", 5, 5))
    assert main(["check", history, "--model", f"{file}:{name}"]) == 2
    assert says in capsys.readouterr().err


def test_model_of_ones_own_is_not_for_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = written(tmp_path, ("deposit", 5, 5))
    assert main(["check", history, "--model", EXAMPLE, "--on", "spark"]) == 2
    assert "without Spark" in capsys.readouterr().err


def test_unknown_model_names_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path), "--model", "atm"]) == 2
    assert "cas-register" in capsys.readouterr().err
