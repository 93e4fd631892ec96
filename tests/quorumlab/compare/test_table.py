"""The tables: grouped, the quorum first; growth of a step is that of its own time."""

from quorumlab.compare.results import Cell, Records
from quorumlab.compare.segments import SINCE_DETECTED
from quorumlab.compare.table import growth_of, tables
from tests.quorumlab.compare.test_results import measured


def test_group_is_an_experiment_at_a_size_and_designs_are_in_order() -> None:
    cells = [measured("quorum", 1000), measured("quorum"), measured("zk-v3")]
    told = list(tables(cells))
    assert [table.title for table in told] == [
        "Broker crash: 100 partitions, equal time-outs",
        "Broker crash: 1,000 partitions, equal time-outs",
    ]
    rows, columns = told[0].rows, told[0].columns
    assert [row["subject"] for row in rows] == ["quorum", "zk-v3"]
    assert columns[:3] == ["subject", "detected", "decided"]
    assert (rows[1]["detected"], rows[1]["decided"], rows[1]["zk writes"]) == (
        "2,000",
        "2,101",
        "100",
    )
    assert rows[1]["requests"] == "2"
    assert told[0].notes == []


def test_column_that_says_nothing_is_left_out_but_losses_are_told() -> None:
    columns = next(tables([measured()])).columns
    assert "persisted" not in columns
    assert "lost" in columns


def test_loss_is_told_with_what_the_document_says_of_it() -> None:
    lossy = measured(records=Records(acknowledged=100, lost=3, admitted="it says so"))
    notes = next(tables([lossy])).notes
    assert notes == ["zk-v3: 3 of 100 acknowledged lost: it says so"]


def test_design_that_gave_up_is_told_with_the_reason() -> None:
    cell = Cell(
        subject="zk-v1",
        experiment="broker-crash",
        partitions=10,
        timeouts="equal",
        outcome="gave up",
        why="late",
    )
    told = next(tables([cell]))
    assert (told.rows, told.notes) == ([], ["zk-v1: gave up: late"])


def test_growth_is_that_of_the_time_since_the_step_before() -> None:
    cells = [measured(partitions=size) for size in (10, 100, 1000)]
    found = {each.step: each for each in growth_of(cells)}
    assert (found["detected"].exponent, found["detected"].grows) == (0.0, "flat")
    assert (found["decided"].grows, found["decided"].sizes) == ("linear", 3)


def test_growth_of_all_since_it_was_detected_is_told_too() -> None:
    cells = [measured(partitions=size) for size in (10, 100, 1000)]
    (whole,) = (each for each in growth_of(cells) if each.step == SINCE_DETECTED)
    assert 0 < whole.exponent < 1, "a first write 600 ms after the fault, and what grows"
