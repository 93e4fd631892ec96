"""Answers: one sentence an experiment, of real results, that claims nothing they do not carry."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from quorumlab.compare.answers import QUESTIONS, Answer, answer, busy, in_time
from quorumlab.compare.experiments import EXPERIMENTS
from quorumlab.compare.node_measurements import Phase
from quorumlab.compare.page import answers_of
from quorumlab.compare.results import Cell, Records, Results

STORED = Path(__file__).parent / "stored"
ONCE, THRICE = (Results.load(STORED / name) for name in ("once.json", "thrice.json"))
CRASH = [cell for cell in ONCE.cells.values() if cell.experiment == "broker-crash"]
_SINCE_MS = 1800.0


def told(cells: Iterable[Cell], *, is_busy: bool = False) -> Answer:
    return answer(cells, is_busy=is_busy)


def crash(subject: str, needs_ms: float | None, *, run: int = 1, **others: object) -> Cell:
    """Detected after 1.8 s; every broker knows so much later."""
    phases = {"detected": Phase(first_ms=_SINCE_MS, done_ms=_SINCE_MS, count=0)}
    if needs_ms is not None:
        done_ms = _SINCE_MS + needs_ms
        phases["applied"] = Phase(first_ms=done_ms, done_ms=done_ms, count=9)
    values = {"outcome": "measured", "silence_ms": 2000, "phases": phases, **others}
    return Cell(
        subject=subject,
        experiment="broker-crash",
        partitions=100,
        timeouts="equal",
        run=run,
        **values,  # type: ignore[arg-type]
    )


def test_real_results_are_told_in_one_sentence_each() -> None:
    found = answers_of(ONCE)
    assert found["broker-crash"].title == (
        "A crash costs the time-out of 2 s; then quorum needs 199 ms, zk-kip497 1.5 s, zk-v2 "
        "16.7 s until every broker knows who leads; zk-v1 gave up; "
        "acknowledged records were lost: zk-v2 1"
    )
    assert found["broker-crash"].caveats == [
        "The others: zk-redesign 2.6 s and zk-v3 6.6 s",
        "One run each: how far runs lie apart is not known",
    ]
    assert found["controller-failover"].title == (
        "A controller's death costs the time-out of 2 s; then quorum needs 326 ms, zk-kip497 "
        "1.7 s, zk-v3 5.4 s until the next one is ready"
    )


def test_real_runs_that_overlap_are_told_to() -> None:
    found = answers_of(THRICE)["broker-crash"]
    assert found.title == (
        "A crash costs the time-out of 2 s; then quorum needs 75 ms, zk-kip497 113 ms, zk-v3 "
        "296 ms until every broker knows who leads; the runs of quorum and zk-kip497 overlap; "
        "the runs of quorum and zk-v3 overlap"
    )
    assert found.caveats == []


NEEDS = "A crash costs the time-out of 2 s; then"
KNOWS = "until every broker knows who leads"


@pytest.mark.parametrize(
    ("cells", "title"),
    [
        (
            [crash("quorum", 5), crash("zk-v3", 2300)],
            f"{NEEDS} quorum needs 5 ms, zk-v3 2.3 s {KNOWS}",
        ),
        (
            [crash("zk-v3", 5), crash("quorum", 2300)],
            f"{NEEDS} quorum needs 2.3 s, zk-v3 5 ms {KNOWS}",
        ),
        (
            [crash("quorum", 80), crash("zk-kip497", 70)],
            f"{NEEDS} quorum needs 80 ms, zk-kip497 70 ms {KNOWS}; "
            "quorum and zk-kip497 are too close for one run each",
        ),
        (
            [
                *(crash("quorum", ms, run=run) for run, ms in enumerate((5, 9, 30), 1)),
                *(crash("zk-v3", ms, run=run) for run, ms in enumerate((25, 40, 50), 1)),
            ],
            f"{NEEDS} quorum needs 9 ms, zk-v3 40 ms {KNOWS}; the runs of quorum and zk-v3 overlap",
        ),
        (
            [
                *(crash("quorum", ms, run=run) for run, ms in enumerate((5, 9, 20), 1)),
                *(crash("zk-v3", ms, run=run) for run, ms in enumerate((25, 40, 50), 1)),
            ],
            f"{NEEDS} quorum needs 9 ms, zk-v3 40 ms {KNOWS}",
        ),
        (
            [
                *(crash("quorum", ms, run=run) for run, ms in enumerate((5, 9, 900), 1)),
                *(crash("zk-kip497", ms, run=run) for run, ms in enumerate((1, 2, 3), 1)),
                *(crash("zk-v3", ms, run=run) for run, ms in enumerate((25, 40, 50), 1)),
            ],
            f"{NEEDS} quorum needs 9 ms, zk-kip497 2 ms, zk-v3 40 ms {KNOWS}; "
            "the runs of quorum and zk-v3 overlap",
        ),
        (
            [crash("quorum", 5), crash("zk-v3", None, outcome="failed", why="a node died")],
            f"{NEEDS} quorum needs 5 ms {KNOWS}; zk-v3 failed",
        ),
        (
            [crash("quorum", 5), crash("zk-v3", 90), crash("zk-v3", None, run=2)],
            f"{NEEDS} quorum needs 5 ms, zk-v3 90 ms {KNOWS}; "
            "zk-v3 was not seen to end in 1 of 2 runs",
        ),
        (
            [
                crash("quorum", 5),
                crash("zk-v3", 90),
                crash("zk-v3", None, run=2, outcome="gave up"),
            ],
            f"{NEEDS} quorum needs 5 ms, zk-v3 90 ms {KNOWS}; zk-v3 in 1 of 2 runs gave up",
        ),
        (
            [crash("quorum", 5), crash("zk-v3", 90, records=Records(lost=3, acknowledged=9))],
            f"{NEEDS} quorum needs 5 ms, zk-v3 90 ms {KNOWS}; "
            "acknowledged records were lost: zk-v3 3",
        ),
        (
            [crash("quorum", 5, silence_ms=9000), crash("zk-v3", 90, silence_ms=18_000)],
            f"A crash is noticed after 1.8 s; then quorum needs 5 ms, zk-v3 90 ms {KNOWS}",
        ),
        (
            [crash("quorum", None), crash("zk-v3", None, outcome="gave up", why="late")],
            "Broker crash: kill -9 of a broker that leads a third of the partitions; zk-v3 gave up",
        ),
        (
            [crash("quorum", 5), crash("quorum/raftos", 900), crash("zk-v3", 90)],
            f"{NEEDS} quorum needs 5 ms, zk-v3 90 ms {KNOWS}",
        ),
        (
            [crash("quorum", 5), crash("quorum/raftos", 900)],
            f"{NEEDS} quorum needs 5 ms, quorum/raftos 900 ms {KNOWS}",
        ),
        (
            [crash("zk-redesign", 15), crash("zk-redesign without batched-commands", 591)],
            f"{NEEDS} zk-redesign needs 15 ms, zk-redesign without batched-commands 591 ms {KNOWS}",
        ),
    ],
    ids=[
        "quorum first", "slower all the same", "too close", "overlap", "apart",
        "not with the next but one", "failed",
        "a run without end",
        "a run that gave up", "lost",
        "other time-outs", "no time at all", "an engine", "engines", "a switch",
    ],
)  # fmt: skip
def test_sentence_says_what_the_cells_carry(cells: list[Cell], title: str) -> None:
    assert told(cells).title == title


@pytest.mark.parametrize(
    ("cells", "caveat"),
    [
        ([crash("zk-v3", 5)], "quorum is not among what was measured here"),
        ([crash("quorum", 5)], "No other time is known here"),
        ([crash("quorum", 5), crash("zk-v3", None)], "zk-v3 was not seen to end"),
        (
            [crash("quorum", 5), crash("zk-v3", 9), replace(crash("zk-v1", 9), partitions=10)],
            "Not measured at this size: zk-v1",
        ),
    ],
)
def test_what_is_missing_is_told(cells: list[Cell], caveat: str) -> None:
    assert caveat in told(cells).caveats


def test_on_a_busy_machine_times_must_lie_further_apart() -> None:
    cells = [crash("quorum", 10), crash("zk-v3", 25)]
    assert told(cells).reservations == []
    assert told(cells, is_busy=True).reservations == [
        "quorum and zk-v3 are too close for one run each"
    ]


@pytest.mark.parametrize(
    ("machine", "is_warned"),
    [
        ({"load_average": 5.2, "processors": 2}, True),
        ({"load_average": 1.0, "processors": 2}, False),
        ({"load_average": 1.1, "processors": 2}, True),
        ({"load_average": "much", "processors": 2}, False),
        ({"processors": 2}, False),
    ],
)
def test_busy_machine_is_warned_of(machine: dict[str, object], is_warned: bool) -> None:
    assert bool(busy(Results(Path("results.json"), machine, 1))) == is_warned


def test_largest_size_that_can_be_compared_is_told_of() -> None:
    alone = [replace(cell, partitions=10_000) for cell in CRASH if cell.subject == "quorum"]
    assert told([*CRASH, *alone[:1]]).partitions == 1000


def test_every_experiment_has_a_question_about_its_own_steps() -> None:
    assert QUESTIONS.keys() == EXPERIMENTS.keys()
    for name, question in QUESTIONS.items():
        steps = ["", *EXPERIMENTS[name].steps]
        assert steps.index(question.since) < steps.index(question.until)
        assert ("{wait}" in question.sentence) == (question.since == "detected")


@pytest.mark.parametrize("drop", ["phases", "seen", "client", "ledger"])
def test_results_with_holes_are_told_too(drop: str) -> None:
    blank = crash("quorum", None)
    cells = [replace(cell, **{drop: getattr(blank, drop)}) for cell in ONCE.cells.values()]
    for experiment in ("broker-crash", "controller-failover"):
        assert told(each for each in cells if each.experiment == experiment).title


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.4, "less than 1 ms"), (5.4, "5 ms"), (999.4, "999 ms"), (999.7, "1 s"), (2000, "2 s"),
        (2345, "2.3 s"), (119_043, "119 s"),
    ],
)  # fmt: skip
def test_durations_have_as_many_digits_as_they_deserve(ms: float, text: str) -> None:
    assert in_time(ms) == text
