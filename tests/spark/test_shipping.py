"""Our code goes to the workers of a session once, under a name that its content has."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark import shipping
from spark.shipping import is_there, ship


class Session:
    """What is asked of a session, and no more."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def addArtifacts(self, path: str, *, pyfile: bool) -> None:
        assert pyfile
        self.sent.append(path)
        sys.path.insert(1, f"/tmp/spark/{Path(path).name}")  # as a classic session does


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one module."""
    module = tmp_path / "project/spark/found_by_nobody.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "from importlib.resources import files\n"
        "ANSWER = files(__package__).joinpath('answer.txt').read_text()\n"
    )
    (module.parent / "answer.txt").write_text("42")
    (module.parent / "__init__.py").touch()
    monkeypatch.setattr(shipping, "ROOT", tmp_path / "project")
    monkeypatch.setattr(shipping, "_archive", shipping._archive.__wrapped__)
    return tmp_path / "project"


def sent_by(session: Session) -> Path:
    ship(session)  # type: ignore[arg-type]
    return Path(session.sent[-1])


def test_code_is_sent_once(root: Path) -> None:
    first, second = Session(), Session()
    assert sent_by(first) == sent_by(first)
    is_there(second)  # type: ignore[arg-type]
    ship(second)  # type: ignore[arg-type]
    assert (len(first.sent), len(second.sent)) == (1, 0)


def test_this_process_imports_what_it_did_before(root: Path) -> None:
    """Else a second command of the same process finds other packages than its own."""
    before = list(sys.path)
    sent_by(Session())
    assert sys.path == before


def test_name_and_bytes_are_those_of_the_content(root: Path) -> None:
    """Spark refuses another content under a name that it has."""
    one, other = (sent_by(Session()) for _ in range(2))
    assert (one.name, one.read_bytes()) == (other.name, other.read_bytes())
    (root / "spark/answer.txt").write_text("43")
    assert sent_by(Session()).name != one.name


def test_python_imports_from_what_is_sent(root: Path) -> None:
    program = f"import sys; sys.path = [{str(sent_by(Session()))!r}, *sys.path]\n"
    program += "from spark.found_by_nobody import ANSWER; print(ANSWER)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "42\n", done.stderr
