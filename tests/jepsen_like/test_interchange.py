"""Histories go out and come back; those of others are read as they write them."""

import json
from collections.abc import Callable, Iterator

import pytest

from jepsen_like.checkers import judge
from jepsen_like.checkers.judges import JUDGED
from jepsen_like.checkers.verdict import Outcome
from jepsen_like.histories.history import (
    NEMESIS,
    Header,
    History,
    Kind,
    MalformedHistory,
    Value,
    encode_header,
    encode_op,
    header_as_value,
)
from jepsen_like.histories.interchange import REGISTERS, edn_lines, jsonl_lines, read_as
from tests.jepsen_like.play import Play

KEY = "chaos-0"


def everything() -> History:
    play = Play(options={"idempotent": False, "brokers": [1, 2]})
    play.line(Kind.INFO, NEMESIS, "kill", {"nodes": [1]}, None, {"faults": ["kill"]})
    play.line(Kind.OK, "node-1", "observe", {KEY: [1, 2, 3, [1, 2]]})
    play.send(0, KEY, 1, 0)
    play.invoke(1, "send", [["send", KEY, 2]])
    play.info(1)
    play.read_all(9, {KEY: [[0, 1]], "chaos-1": []})
    play.line(Kind.INVOKE, 3, "write", ["r", None], 'a "quoted"\nerror')
    return play.history


def msgpack_file(history: History) -> bytes:
    return encode_header(history.header) + b"".join(map(encode_op, history.ops))


Lines = Callable[[History], Iterator[str]]


@pytest.mark.parametrize(("suffix", "lines"), [(".edn", edn_lines), (".jsonl", jsonl_lines)])
def test_history_that_goes_out_comes_back(suffix: str, lines: Lines) -> None:
    history = everything()
    text = "\n".join(lines(history)) + "\n"
    assert read_as(text.encode(), suffix) == history


def test_edn_has_keywords_where_jepsen_wants_them() -> None:
    play = Play()
    play.send(0, KEY, 7, 3)
    _, invoked, completed = edn_lines(play.history)
    assert invoked == (
        '{:index 0, :time 0, :type :invoke, :process 0, :f :send, :value [[:send "chaos-0" 7]]}'
    )
    assert ':value [[:send "chaos-0" [3 7]]]' in completed


def test_operations_of_jepsen_are_read_plain_tagged_and_in_one_vector() -> None:
    ops = [
        "{:type :invoke, :f :send, :value [[:send 0 1]], :process 0, :time 10, :index 0}",
        "{:type :ok, :f :send, :value [[:send 0 [5 1]]], :process 0, :time 20, :index 1}",
        "{:type :info, :f :kill, :value {:n1 :killed}, :process :nemesis, :time 21, :index 2}",
        "{:type :invoke, :f :poll, :value [[:poll]], :process 1, :time 30, :index 3}",
        "{:type :ok, :f :poll, :value [[:poll {0 [[5 9]]}]], :process 1, :time 40, :index 4}",
    ]
    plain = read_as("\n".join(ops).encode(), ".edn")
    assert plain == read_as("\n".join(f"#jepsen.history.Op{op}" for op in ops).encode(), ".edn")
    assert plain == read_as(f"[{' '.join(ops)}]".encode(), ".edn")
    assert plain.header.workload == "log"
    assert plain.ops[2].process == NEMESIS
    assert {each.rule for each in judge(plain).findings} >= {"inconsistent-offsets", "phantom"}


ETCD = """\
INFO  jepsen.core - Worker 0 starting
INFO  jepsen.util - 0	:invoke	:read	nil
INFO  jepsen.util - 0	:ok	:read	nil
INFO  jepsen.util - 1	:invoke	:write	1
INFO  jepsen.util - 1   :ok     :write  1
INFO  jepsen.util - 2	:invoke	:cas	[3 4]
INFO  jepsen.util - 2	:fail	:cas	[3 4]
INFO  jepsen.util - 3	:invoke	:cas	[1 2]
INFO  jepsen.util - 3	:info	:cas	:timed-out
INFO  jepsen.util - 4	:invoke	:read	nil
INFO  jepsen.util - 4	:fail	:read	:timed-out
INFO  jepsen.util - 0	:invoke	:read	nil
INFO  jepsen.util - 0	:ok	:read	{read}
"""


@pytest.mark.parametrize(("read", "outcome"), [(1, "valid"), (2, "valid"), (3, "violated")])
def test_console_log_is_read_and_judged(read: int, outcome: str) -> None:
    history = read_as(ETCD.replace("{read}", str(read)).encode(), ".log")
    assert history.header.workload == "cas-register"
    assert len(history.ops) == 12
    assert judge(history).outcome is Outcome(outcome)


def test_failed_cas_of_a_console_log_says_that_the_value_was_another() -> None:
    spoilt = ETCD.replace("{read}", "1").replace("[3 4]", "[1 4]")
    assert judge(read_as(spoilt.encode(), ".log")).outcome is Outcome.VIOLATED


KV = """\
{:process 0, :type :invoke, :f :append, :key "0", :value "x 0 0 y"}
{:process 1, :type :invoke, :f :get, :key "0", :value nil}
{:process 0, :type :ok, :f :append, :key "0", :value "x 0 0 y"}
{:process 1, :type :ok, :f :get, :key "0", :value "{read}"}
"""


@pytest.mark.parametrize(
    ("read", "outcome"), [("", "valid"), ("x 0 0 y", "valid"), ("x", "violated")]
)
def test_key_beside_the_value_goes_into_it(read: str, outcome: str) -> None:
    history = read_as(KV.replace("{read}", read).encode(), ".txt")
    assert history.header.workload == "kv"
    assert judge(history).outcome is Outcome(outcome)


def test_register_without_a_key_is_read() -> None:
    lines = [
        {"type": "invoke", "process": 0, "f": "write", "value": 3},
        {"type": "ok", "process": 0, "f": "write", "value": 3},
        {"type": "invoke", "process": 1, "f": "read", "value": None},
        {"type": "ok", "process": 1, "f": "read", "value": 4},
    ]
    history = read_as("\n".join(map(json.dumps, lines)).encode(), ".jsonl")
    assert history.header.workload == "register"
    assert judge(history).objects == {"": Outcome.VIOLATED}


def test_register_without_a_key_may_never_be_written() -> None:
    lines = [{"type": kind, "process": 0, "f": "read", "value": None} for kind in ("invoke", "ok")]
    history = read_as("\n".join(map(json.dumps, lines)).encode(), ".jsonl", "register")
    assert judge(history).objects == {"": Outcome.VALID}


def did(*operations: tuple[str, Value, Value]) -> bytes:
    """Operations that were ok, one after the other, as others write them."""
    lines = [
        {"type": kind, "process": 0, "f": f, "value": value}
        for f, asked, answered in operations
        for kind, value in (("invoke", asked), ("ok", answered))
    ]
    return "\n".join(map(json.dumps, lines)).encode()


def test_change_without_a_key_may_end_without_a_value() -> None:
    for f, asked, read in (("write", 3, 3), ("cas", [None, 4], 4)):
        history = read_as(did((f, asked, None), ("read", None, read)), ".jsonl")
        assert judge(history).outcome is Outcome.VALID


LISTS = did(("read", None, []), ("remove", "a", None), ("read", None, []))


@pytest.mark.parametrize(("written", "read"), [("1 9 17", "17 9 1"), ("[1] #{} 9", "9 #{} [1]")])
def test_set_that_is_read_is_the_one_that_was_written(written: str, read: str) -> None:
    text = f"""
        {{:type :invoke, :process 0, :f :write, :value #{{{written}}}}}
        {{:type :ok, :process 0, :f :write, :value #{{{written}}}}}
        {{:type :invoke, :process 1, :f :read, :value nil}}
        {{:type :ok, :process 1, :f :read, :value #{{{read}}}}}
    """
    assert judge(read_as(text.encode(), ".edn")).outcome is Outcome.VALID


def test_set_to_which_nothing_is_added_is_guessed_as_one() -> None:
    history = read_as(LISTS, ".jsonl")
    assert history.header.workload == "set"
    assert judge(history).outcome is Outcome.VALID


@pytest.mark.parametrize("model", sorted(JUDGED))
def test_what_is_told_is_never_guessed(model: str) -> None:
    """Values get keys only if what is told is of registers, whatever the operations look like."""
    content = did(("read", None, []))
    header = json.dumps(header_as_value(Header(workload=model, seed=0))).encode()
    for history in (
        read_as(content, ".jsonl", model),
        read_as(header + b"\n" + content, ".jsonl"),
    ):
        assert history.header.workload == model
        assert (history.ops[1].value == ["", []]) is (model in REGISTERS)


@pytest.mark.parametrize(("seeks", "outcome"), [("true", "valid"), ("false", "violated")])
def test_reader_of_jepsen_that_seeks_to_the_beginning_reads_again(seeks: str, outcome: str) -> None:
    lines = []
    for kind, sent, polled in (
        ("invoke", "[[:send 0 5]]", "[[:poll]]"),
        ("ok", "[[:send 0 [0 5]]]", "[[:poll {0 [[0 5]]}]]"),
    ):
        assign = f":f :assign, :value [0], :seek-to-beginning? {seeks}"
        poll = f":f :poll, :value {polled}"
        steps = [f":f :send, :value {sent}", assign, poll, assign, poll]
        lines.append([f"{{:type :{kind}, :process 0, {step}}}" for step in steps])
    text = "\n".join(line for both in zip(*lines, strict=True) for line in both)
    assert judge(read_as(text.encode(), ".edn")).outcome is Outcome(outcome)


def test_nobody_says_what_registers_of_others_begin_with() -> None:
    content = did(("read", None, 0), ("write", 1, 1), ("read", None, 1))
    history = read_as(content, ".jsonl")
    assert judge(history).outcome is Outcome.UNDECIDED
    assert read_as("\n".join(jsonl_lines(history)).encode(), ".jsonl") == history


def test_whoever_reads_says_what_it_shall_be_judged_as() -> None:
    history = everything()
    for content, suffix in (
        (msgpack_file(history), ".msgpack"),
        ("\n".join(edn_lines(history)).encode(), ".edn"),
    ):
        assert read_as(content, suffix, "observe").header.workload == "observe"


@pytest.mark.parametrize(
    ("content", "suffix", "what"),
    [
        (b"", ".parquet", "histories end with"),
        (b"\xff", ".edn", "not UTF-8"),
        (b"[1 2", ".edn", "line 1, column 1"),
        (b"1", ".edn", "not an operation"),
        (b"{:f :read, :process 0}", ".edn", "'type' is missing"),
        (b'{"type": "maybe", "f": "read", "process": 0}', ".jsonl", "operation 0: 'maybe'"),
        (b'{"type": "ok", "f": "read", "process": null}', ".jsonl", "not a process"),
        (b'{"type": "ok", "f": "read", "process": 1, "time": "x"}', ".jsonl", "whole numbers"),
        (b"{", ".jsonl", "line 1: not JSON"),
        (b'{"format": "quorumlab-history", "version": 9}', ".jsonl", "version 9"),
        (b'{"format": "quorumlab-history", "version": 1}', ".jsonl", "the header lacks"),
        (b"[" * 100_000, ".jsonl", "line 1: nested too deep"),
        (
            b'{"format": "quorumlab-history", "version": 1, "workload": 5, "seed": 1, '
            b'"design": "quorum", "options": {}}',
            ".jsonl",
            "the header lacks",
        ),
        (b"nothing of it\n", ".log", "no line of it"),
        (b"INFO jepsen.util - 0 :ok :read [1", ".log", "not a value"),
    ],
)
def test_what_is_no_history_is_refused_in_words(content: bytes, suffix: str, what: str) -> None:
    with pytest.raises(MalformedHistory, match=what):
        read_as(content, suffix)


def test_line_separators_within_a_json_text_end_no_line() -> None:
    line = '{"type": "invoke", "process": 0, "f": "write", "value": ["r", "a\u2028b\x85"]}\r\n'
    (op,) = read_as(line.encode(), ".jsonl").ops
    assert op.value == ["r", "a\u2028b\x85"]


@pytest.mark.parametrize("lines", [edn_lines, jsonl_lines])
def test_extra_that_would_take_the_place_of_a_field_is_refused(lines: Lines) -> None:
    """It would come back as another history."""
    play = Play()
    play.line(Kind.INVOKE, 0, "poll", [["poll"]], None, {"value": 3})
    with pytest.raises(MalformedHistory, match="operation 0: an extra is called value"):
        list(lines(play.history))


def test_models_of_jepsen_are_guessed_and_judged() -> None:
    for value, workload, outcome in (
        ([["append", "x", 1], ["r", "x", [1]]], "append", "valid"),
        ([["w", "x", 1], ["r", "x", 2]], "rw-register", "violated"),
    ):
        history = read_as(did(("txn", value, value)), ".jsonl")
        assert history.header.workload == workload
        assert judge(history).outcome.value == outcome


def test_times_of_others_may_go_back() -> None:
    content = did(("write", 1, 1), ("read", None, 1)).replace(b'"f"', b'"time": 9, "f"', 1)
    assert [op.time_ns for op in read_as(content, ".jsonl").ops][:2] == [9, 9]


def test_a_queue_without_keys_is_one_queue() -> None:
    both = ("enqueue", 1, 1), ("enqueue", 2, 2)
    for taken, outcome in ((1, "valid"), (2, "violated")):
        history = read_as(did(*both, ("dequeue", None, taken)), ".jsonl")
        assert history.header.workload == "queue"
        assert judge(history).outcome.value == outcome


def test_what_only_some_histories_have_tells_what_they_are_of() -> None:
    for fs, workload in (
        ([("enqueue", 1, 1), ("drain", None, [1])], "total-queue"),
        ([("add", 1, 1), ("read", None, 1)], "counter"),
        ([("add", 1, 1), ("read", None, [1])], "set"),
        ([("transfer", {"from": 0, "to": 1, "amount": 1}, None)], "bank"),
    ):
        assert read_as(did(*fs), ".jsonl").header.workload == workload


def test_faults_do_not_tell_what_a_history_is_of() -> None:
    fault = json.dumps({"type": "info", "process": "nemesis", "f": "drain", "value": None}).encode()
    content = did(("enqueue", 1, 1), ("dequeue", None, 1)) + b"\n" + fault
    assert read_as(content, ".jsonl").header.workload == "queue"
