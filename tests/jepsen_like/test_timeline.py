"""The timeline: lanes, bands, and what is cut away around the evidence."""

from jepsen_like.histories.history import Kind, Op, Value
from jepsen_like.histories.timeline import around, timeline


def op(index: int, kind: Kind, process: int | str, f: str, value: Value, **others: Value) -> Op:
    return Op(
        index=index,
        time_ns=index * 1_000_000,
        kind=kind,
        process=process,
        f=f,
        value=value,
        error=others.pop("error", None),
        extra=others,
    )


FAULT = {"fault": 0, "kind": "kill", "role": "leader", "nodes": [3], "parameters": {}}
OPS = [
    op(0, Kind.INFO, "nemesis", "phase", "safety"),
    op(1, Kind.INVOKE, 0, "send", [["send", "a-0", 7]]),
    op(2, Kind.INVOKE, 1, "poll", [["poll"]]),
    op(3, Kind.INFO, "nemesis", "inject", FAULT),
    op(4, Kind.OK, 1, "poll", [["poll", {"a-0": [[n, n] for n in range(8)]}]]),
    op(5, Kind.INFO, 0, "send", [["send", "a-0", 7]], error="no answer"),
    op(6, Kind.OK, "node-1", "observe", {"a-0": [1, 0, 0, [1]]}),
    op(7, Kind.INFO, "nemesis", "heal", FAULT, bit=True, evidence="node 3 died"),
    op(8, Kind.INVOKE, 2, "cas", ["x", [1, 2]]),
    op(9, Kind.FAIL, 2, "cas", ["x", [1, 2]], seen=5),
]


def test_lanes_bands_and_evidence() -> None:
    assert list(timeline(OPS, evidence={1, 5})) == [
        "      t ms  faults  lanes",
        "       0.0                   0 === safety",
        "       1.0 *        [        1 0 send a-0 7",
        "       2.0          | [      2 1 poll",
        "       3.0  A       | |      3 === A: kill 3 begins",
        "       4.0  A       | ]      4 1 poll -> ok a-0: 0=0 1=1 2=2 3=3 4=4 5=5 and 2 more",
        "       5.0 *A       ? .      5 0 send -> info no answer",
        "       7.0          . .      7 === A: kill 3 is healed: node 3 died",
        "       8.0          [ .      8 2 cas x 1 -> 2",
        "       9.0          x .      9 2 cas -> fail saw 5",
    ]


def test_who_was_thrown_away_leaves_its_lane() -> None:
    lines = list(timeline(OPS))
    assert lines[-2].split()[1:3] == ["[", "."], "process 2 works where 0 was"


def test_around_keeps_the_neighbours_of_evidence_and_all_faults() -> None:
    kept = [each.index for each in around(OPS, {9}, context=1)]
    assert kept == [0, 3, 7, 8, 9]
