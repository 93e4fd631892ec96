"""`quorumlab check` and `chaos export`: what is said, and the exit code."""

import json
from pathlib import Path

import pytest

from jepsen_like.histories.history import Kind, encode_header, encode_op
from quorumlab.cli import main
from quorumlab.verbs.check_spark import PlanReport
from tests.jepsen_like.play import Play
from tests.jepsen_like.report.drawn import texts_of
from tests.jepsen_like.report.recorded import data_in

KEY = "chaos-0"


def run_directory(tmp_path: Path, *, loses: bool = False, void: tuple[str, ...] = ()) -> Path:
    play = Play()
    play.send(0, KEY, 1, 0)
    play.send(0, KEY, 2, 1)
    play.read_all(9, {KEY: [[1, 2]] if loses else [[0, 1], [1, 2]]})
    content = encode_header(play.history.header) + b"".join(map(encode_op, play.ops))
    (tmp_path / "history.msgpack").write_bytes(content)
    (tmp_path / "verdict.json").write_text(json.dumps({"void": list(void)}))
    return tmp_path


def test_a_picture_is_written_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, out = run_directory(tmp_path), tmp_path / "run.svg"
    (directory / "run.json").write_text(
        json.dumps({"command": "quorumlab chaos run", "planted": "takes_repetitions"})
    )
    for _ in range(2):
        assert main(["check", str(directory), "--export", str(out)]) == 0
        assert f"picture      {out}" in capsys.readouterr().out
    text = " ".join(texts_of(out.read_text()))
    assert "2 sends acknowledged, none lost, without a fault." in text
    assert "Planted: takes_repetitions, which breaks the rule" in text
    assert "quorumlab chaos run" in text
    assert not (directory / "report.html").exists()


def test_valid_run_is_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(run_directory(tmp_path))]) == 0
    told = capsys.readouterr().out
    assert "4 operations ok, 0 failed, 0 unknown, in 8 lines" in told
    assert "chaos-0  valid" in told
    assert told.splitlines()[-1] == "valid: 1 valid"


def test_violation_is_told_with_its_operations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(run_directory(tmp_path, loses=True))]) == 4
    told = capsys.readouterr().out
    assert "lost-write  chaos-0: 1 was acknowledged at offset 0 and never read" in told
    assert "process 0  ok      send  [['send', 'chaos-0', [0, 1]]]" in told


def test_run_is_found_below_the_directory_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        run_directory(tmp_path / name)
        code = main(["chaos", "timeline", str(tmp_path)])
        assert code == (0 if name == "first" else 1)
    assert f"has 2 runs in it: name one, such as {tmp_path / 'first'}" in capsys.readouterr().err


def test_void_run_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = run_directory(tmp_path, void=("no fault bit",))
    assert main(["check", str(directory)]) == 5
    assert "void  no fault bit" in capsys.readouterr().out


@pytest.mark.parametrize("told", ["", "{", "[]", '{"vokd": ["no fault bit"]}', '{"void": 7}'])
def test_verdict_that_does_not_say_whether_its_run_is_void_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], told: str
) -> None:
    directory = run_directory(tmp_path)
    (directory / "verdict.json").write_text(told)
    assert main(["check", str(directory)]) == 1
    assert "void" in capsys.readouterr().err


def test_undecided_is_five_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = Play()
    play.send(0, KEY, 1, 0)
    path = tmp_path / "history.msgpack"
    path.write_bytes(
        encode_header(play.history.header) + b"".join(map(encode_op, play.ops)) + b"\xcf"
    )
    assert main(["check", str(path)]) == 5
    told = capsys.readouterr().out
    assert "undecided because  chaos-0: 1 acknowledged" in told
    assert "the last operation is torn" in told


def test_scripts_are_told_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(run_directory(tmp_path, loses=True)), "--format", "json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "violated"
    assert {finding["rule"] for finding in told["findings"]} == {"lost-write"}
    keys = ["counts", "findings", "history", "objects", "outcome", "reason", "report", "void"]
    assert sorted(told) == keys, "keys are added, never changed"
    assert sorted(told["findings"][0]) == ["detail", "object", "ops", "rule"]
    assert told["report"] == str(tmp_path / "report.html")


def test_violated_run_has_its_page_and_says_how_to_look_closer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = run_directory(tmp_path, loses=True)
    assert main(["check", str(directory)]) == 4
    told = capsys.readouterr().out.splitlines()
    timeline = f"quorumlab chaos timeline {directory} --around 0,1,6,7"
    assert told[-2:] == [f"look closer  {timeline}", f"report       {directory}/report.html"]
    assert data_in((directory / "report.html").read_text())["findings"][0]["rule"] == "lost-write"
    assert main(timeline.split()[1:]) == 0
    marked = [line for line in capsys.readouterr().out.splitlines() if " *" in line]
    assert len(marked) == 4


def test_valid_run_has_a_page_only_if_asked(tmp_path: Path) -> None:
    directory = run_directory(tmp_path)
    assert main(["check", str(directory)]) == 0
    assert not (directory / "report.html").exists()
    page = tmp_path / "asked.html"
    assert main(["check", str(directory / "history.msgpack"), "--report", str(page)]) == 0
    assert data_in(page.read_text())["verdict"]["outcome"] == "valid"


def test_page_that_nobody_asked_for_may_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = run_directory(tmp_path, loses=True)
    (directory / "report.html").mkdir()
    assert main(["check", str(directory)]) == 4
    assert "no report: cannot write" in capsys.readouterr().err
    assert main(["check", str(directory), "--report", str(directory / "report.html")]) == 1


@pytest.mark.parametrize("option", ["--edn", "--jsonl"])
def test_exported_history_gets_the_same_verdict(tmp_path: Path, option: str) -> None:
    directory = run_directory(tmp_path, loses=True)
    exported = tmp_path / f"history.{option.removeprefix('--')}"
    assert main(["chaos", "export", str(directory), option, str(exported)]) == 0
    assert main(["check", str(exported)]) == 4


def test_model_says_what_it_is_judged_as(tmp_path: Path) -> None:
    play = Play()
    play.send(0, KEY, 1, 0)
    play.read_all(9, {KEY: []})
    play.line(Kind.OK, "node-1", "observe", {KEY: [1, 1, 1, [1]]})
    path = tmp_path / "history.msgpack"
    path.write_bytes(encode_header(play.history.header) + b"".join(map(encode_op, play.ops)))
    assert main(["check", str(path), "--model", "log"]) == 4
    assert main(["check", str(path), "--model", "observe"]) == 0


def test_model_that_has_none_of_the_operations_proves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(run_directory(tmp_path)), "--model", "observe"]) == 5
    assert "no operation that is judged was ok" in capsys.readouterr().out


def test_a_table_is_for_spark_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.parquet"
    path.touch()
    assert main(["check", str(path), "--on", "local"]) == 2
    assert "a table, which only Spark reads" in capsys.readouterr().err


def test_many_findings_and_objects_are_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    play = Play()
    for number in range(30):
        play.send(0, f"chaos-{number}", number, 0)
        play.send(0, f"chaos-{number}", 100 + number, 1)
    play.read_all(9, {f"chaos-{number}": [[1, 100 + number]] for number in range(30)})
    path = tmp_path / "history.msgpack"
    path.write_bytes(encode_header(play.history.header) + b"".join(map(encode_op, play.ops)))
    assert main(["check", str(path)]) == 4
    told = capsys.readouterr().out
    assert "and 10 violated" in told
    assert "and 20 more findings" in told


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["check", "nowhere"], 1, "no such file"),
        (["check", "empty"], 1, "no history.msgpack in it or below it, nor test.jepsen"),
        (["check", "data.csv"], 1, "a history ends with"),
        (["check", "data.parquet"], 1, "not a table of histories"),
        (["check", "broken.msgpack"], 1, "not a history"),
        (["check", "lacking.jsonl"], 1, "'process' is missing"),
        (["check", "strange.jsonl"], 1, "not what a send looks like"),
        (["check", "strange.jsonl", "--on", "spark"], 1, "not what a send looks like"),
        (["chaos", "export", "strange.jsonl", "--edn", "no/such/directory"], 1, "No such file"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_words(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    what: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_bytes(b"1,2")
    (tmp_path / "data.parquet").write_bytes(b"PAR1")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.msgpack").write_bytes(b"\x01")
    (tmp_path / "lacking.jsonl").write_text('{"type": "ok", "f": "read"}')
    lines = [
        {"type": "invoke", "process": 1, "f": "send", "value": []},
        {"type": "ok", "process": 1, "f": "send", "value": ["sned"]},
    ]
    (tmp_path / "strange.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert main(arguments) == code
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    "told", [{"findings": [{"ops": [1]}]}, {"verdict": {"findings": []}}, [], 3]
)
def test_timeline_of_a_run_is_round_its_own_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], told: object
) -> None:
    directory = run_directory(tmp_path, loses=True)
    (directory / "verdict.json").write_text(json.dumps(told))
    assert main(["chaos", "timeline", str(directory), "--context", "0"]) == 0
    lines = len(capsys.readouterr().out.splitlines())
    assert lines == (2 if isinstance(told, dict) and "findings" in told else 9)


def test_timeline_is_refused_what_is_no_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["chaos", "timeline", str(run_directory(tmp_path)), "--around", "1,x"]) == 2
    assert "--around 1,x" in capsys.readouterr().err


BEGUN = b"""
{"type": "invoke", "process": 0, "f": "read", "value": null}
{"type": "ok", "process": 0, "f": "read", "value": 0}
"""


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 5), (("--initial", "0"), 0), (("--initial", "nil"), 4), (("--initial", "zero"), 4)],
)
def test_what_registers_begin_with_is_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: int
) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(BEGUN)
    assert main(["check", str(path), *options]) == code
    assert ("--initial 0" in capsys.readouterr().out) is (code == 5)


@pytest.mark.parametrize(("options", "code"), [((), 5), (("--trust-failures",), 0)])
def test_failures_that_say_timed_out_can_be_trusted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: int
) -> None:
    path = tmp_path / "history.jsonl"
    lines: list[dict[str, object]] = [
        {"type": "invoke", "process": 0, "f": "write", "value": 1},
        {"type": "fail", "process": 0, "f": "write", "value": 1, "error": "timed out"},
        {"type": "invoke", "process": 0, "f": "read"},
        {"type": "ok", "process": 0, "f": "read", "value": None},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["check", str(path), *options]) == code
    assert ("1 trusted failures" in capsys.readouterr().out) is (code == 0)


def test_only_transactions_are_promised_an_isolation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["check", str(run_directory(tmp_path)), "--isolation", "serializable"]
    assert main(asked) == 2
    assert "only append, rw-register have one; this is of log" in capsys.readouterr().err


def test_what_a_weaker_isolation_allows_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.edn"
    stale = [("[[:append 1 1]]", "[[:append 1 1]]"), ("[[:r 1 nil]]", "[[:r 1 []]]")]
    lines = [
        f"{{:type :{kind}, :process 0, :f :txn, :value {value}}}"
        for values in stale
        for kind, value in zip(("invoke", "ok"), values, strict=True)
    ]
    path.write_text("\n".join(lines))
    assert main(["check", str(path)]) == 4
    assert "G-single-process" in capsys.readouterr().out
    assert main(["check", str(path), "--isolation", "serializable"]) == 0


def test_only_registers_have_an_initial_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(run_directory(tmp_path)), "--initial", "0"]) == 2
    assert "this is of log" in capsys.readouterr().err


FOREIGN = b"a file of the user's own"


@pytest.mark.parametrize(
    ("arguments", "name", "code"),
    [
        (["check", ".", "--report", "mine"], "mine", 1),
        (["check", "."], "report.html", 4),  # the page that nobody asked for
        (["check", "history.msgpack", "--report", "history.msgpack"], "history.msgpack", 1),
        (["chaos", "export", ".", "--edn", "mine"], "mine", 1),
        (["chaos", "export", ".", "--jsonl", "mine"], "mine", 1),
    ],
)
def test_file_that_quorumlab_did_not_make_is_never_overwritten(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    name: str,
    code: int,
) -> None:
    monkeypatch.chdir(run_directory(tmp_path, loses=True))
    path = tmp_path / name
    if not path.exists():
        path.write_bytes(FOREIGN)
    before = path.read_bytes()
    assert main(arguments) == code
    assert path.read_bytes() == before
    assert "name another" in capsys.readouterr().err


def test_what_quorumlab_made_is_made_again(tmp_path: Path) -> None:
    directory = str(run_directory(tmp_path, loses=True))
    for _ in range(2):
        assert main(["check", directory]) == 4
        assert main(["chaos", "export", directory, "--edn", str(tmp_path / "h.edn")]) == 0


def test_several_histories_are_judged_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def written(name: str, value: int) -> str:
        path = tmp_path / name
        lines = [
            {"type": kind, "process": 0, "f": f, "value": told}
            for f, told in (("write", 1), ("read", value))
            for kind in ("invoke", "ok")
        ]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return str(path)

    right, wrong = written("right.jsonl", 1), written("wrong.jsonl", 2)
    assert main(["check", right, right, "--on", "local"]) == 0
    assert main(["check", wrong, right, "--on", "local"]) == 4
    told = capsys.readouterr().out
    assert told.index("wrong.jsonl") < told.rindex("right.jsonl")
    page = str(tmp_path / "page.html")
    assert main(["check", wrong, right, "--on", "local", "--report", page]) == 2


def test_share_of_a_stage_is_shown_while_spark_works_on_one() -> None:
    shown: list[str] = []
    report = PlanReport(shown.append, is_told=False)  # type: ignore[arg-type]  # a line of a terminal
    report.begin("Spark counts")
    report.show_share(0.0)
    report.show_share(0.25)
    assert shown == ["Spark counts", "Spark counts: 25% of this stage"]
