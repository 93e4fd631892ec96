"""`quorumlab check` on Spark: tables are made once, and many runs are one verdict."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jepsen_like.checkers.verdict import Verdict
from jepsen_like.histories.history import encode_header, encode_op
from jepsen_like.histories.interchange import edn_lines, jsonl_lines
from quorumlab.arguments import Failed
from quorumlab.cli import main
from quorumlab.histories import Asked, histories_in, tables_of
from quorumlab.verbs import check_spark
from spark.parquet import is_current, made_of
from spark.session import Settings
from tests.jepsen_like.play import Play
from tests.spark.histories import random_history


def run_in(directory: Path, seed: int) -> Path:
    history = random_history(seed)
    directory.mkdir(parents=True)
    path = directory / "history.msgpack"
    path.write_bytes(encode_header(history.header) + b"".join(map(encode_op, history.ops)))
    return path


def quiet(text: str) -> None:
    """Progress that nobody looks at."""


def test_all_runs_below_a_directory_are_named_by_where_they_are(tmp_path: Path) -> None:
    paths = [run_in(tmp_path / name, 1) for name in ("a", "b/c")]
    assert histories_in(str(tmp_path)) == paths
    with tables_of([str(tmp_path)], quiet) as tables:
        assert [table.run for table in tables] == ["a", "b/c"]


def test_table_is_made_once_and_again_when_the_history_changes(tmp_path: Path) -> None:
    path = run_in(tmp_path / "run", 1)
    made = []
    for _ in range(2):
        with tables_of([str(path.parent)], quiet) as (table,):
            made.append(table.path.stat().st_mtime_ns)
    assert made[0] == made[1]
    path.write_bytes(path.read_bytes()[:-1])
    with tables_of([str(path.parent)], quiet) as (table,):
        assert table.path.stat().st_mtime_ns > made[0]


def test_table_overwrites_nothing_of_the_users_own(tmp_path: Path) -> None:
    """Neither beside the history, nor in the directory of tables, nor instead of that directory."""
    path = run_in(tmp_path / "run", 1).rename(tmp_path / "run" / "h.msgpack")
    home = tmp_path / "run" / ".quorumlab"
    (tmp_path / "run" / "h.parquet").write_text("mine")
    with tables_of([str(path)], quiet) as (table,):
        assert table.path == home / "h.msgpack.parquet"
    table.path.write_text("mine")
    with tables_of([str(path)], quiet) as (other,):
        assert is_current(other.path)
    table.path.unlink()
    home.rmdir()
    home.write_text("mine")
    with tables_of([str(path)], quiet) as (other,):
        assert is_current(other.path)
    assert not other.path.exists()
    assert {each.read_text() for each in (home, tmp_path / "run" / "h.parquet")} == {"mine"}


def test_histories_of_one_name_have_tables_of_their_own(tmp_path: Path) -> None:
    history = random_history(1)
    for suffix, lines in (("edn", edn_lines), ("jsonl", jsonl_lines)):
        (tmp_path / f"h.{suffix}").write_text("\n".join(lines(history)))
    for _ in range(2):
        for suffix in ("edn", "jsonl"):
            with tables_of([str(tmp_path / f"h.{suffix}")], quiet) as (table,):
                assert (made_of(table.path) or "").startswith(f"h.{suffix} ")
    assert len(list((tmp_path / ".quorumlab").iterdir())) == 2


def test_table_is_made_again_for_another_model_or_initial_value(tmp_path: Path) -> None:
    play = Play(workload="register")
    play.did(0, "read", ["x", None], ["x", 0])
    path = tmp_path / "h.jsonl"
    path.write_text("\n".join(jsonl_lines(play.history)))
    told = set()
    for asked in (Asked(), Asked(model="cas-register"), Asked(initial=(0,)), Asked(initial=(1,))):
        with tables_of([str(path)], quiet, asked) as (table,):
            rows = pq.read_table(table.path)
            told.add((rows.column("workload")[0].as_py(), rows.column("options")[0].as_py()))
    assert told == {
        ("register", "{}"),
        ("cas-register", "{}"),
        ("register", '{"initial": [0]}'),
        ("register", '{"initial": [1]}'),
    }


def test_history_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "history.msgpack"
    path.write_bytes(b"\x93\x01\x02\x03")
    with pytest.raises(Failed, match=f"{path}: not a history"), tables_of([str(path)], quiet):
        pass


def test_many_runs_go_to_spark_and_one_small_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        run_in(tmp_path / name, 13)
    asked: list[Settings] = []

    def checked(tables: object, settings: Settings, *_: object, **__: object) -> Verdict:
        asked.append(settings)
        return Verdict.of([])

    monkeypatch.setattr(check_spark, "_checked", checked)
    main(["check", str(tmp_path / "a")])
    assert asked == []
    assert main(["check", str(tmp_path)]) == 0
    assert main(["check", str(tmp_path / "a"), "--master", "local[1]"]) == 0
    assert [settings.master for settings in asked] == ["local[*]", "local[1]"]


def test_without_spark_a_small_history_is_judged_and_many_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        run_in(tmp_path / name, 13)
    monkeypatch.setattr(check_spark, "is_installed", lambda: False)
    assert main(["check", str(tmp_path / "a"), "--on", "spark"]) == 1
    assert "pip install -e '.[spark]'" in capsys.readouterr().err
    assert main(["check", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    "options",
    [["--master", "local[1]", "--remote", "sc://x"], ["--on", "local", "--remote", "sc://x"]],
)
def test_options_that_contradict_each_other_are_refused(options: list[str], tmp_path: Path) -> None:
    run_in(tmp_path / "a", 13)
    assert main(["check", str(tmp_path / "a"), *options]) == 2
    if "--master" in options:
        assert main(["chaos", "sim", "--sweep", "1", *options]) == 2


def test_remote_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_in(tmp_path / "a", 13)
    asked: list[tuple[str | None, object]] = []

    def checked(_: object, settings: Settings, *__: object, **told: object) -> Verdict:
        asked.append((settings.remote, told["verdicts"]))
        return Verdict.of([])

    monkeypatch.setattr(check_spark, "_checked", checked)
    assert main(["check", str(tmp_path / "a"), "--remote", "sc://x"]) == 0
    assert main(["check", str(tmp_path / "a"), "--verdicts", "there"]) == 0
    assert asked == [("sc://x", None), (None, "there")]
