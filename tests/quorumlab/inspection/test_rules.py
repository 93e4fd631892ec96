"""Every rule of partitions and brokers can be broken, and says how."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from controller.metadata.changes import Change
from quorumlab.inspection.verifying import Verified, verify
from tests.quorumlab.inspection.logs import (
    broker,
    change,
    cluster,
    fencing,
    partition,
    write_log,
)
from wire.partition_columns import NewPartitions, PartitionChanges


def violations(directory: Path, *batches: Sequence[Change]) -> list[str]:
    target = write_log(directory, cluster(), *batches)
    return [str(violation) for violation in verify(target, Verified())]


@pytest.mark.parametrize(
    "batch",
    [
        (change(isr=(1, 3)),),
        (fencing(1), change(isr=(2, 3), leader=2)),
        (change(isr=(1, 2)), change(isr=(1,))),
        (change(isr=(1,), eligible_leader_replicas=()),),
        (change(replicas=(1, 2, 3, 4), adding_replicas=(4,)),),
        (broker(2, epoch=50),),
        (partition(1), partition(2, leader=2)),
    ],
)
def test_what_controllers_write_breaks_nothing(tmp_path: Path, batch: Sequence[Change]) -> None:
    assert violations(tmp_path, batch) == []


@pytest.mark.parametrize(
    ("rule", "batch", "detail"),
    [
        ("M-LI", (change(isr=(2, 3)),), "leader 1 is not in the ISR [2, 3]"),
        ("M-LI", (partition(1, leader=9),), "leader 9 is not in the ISR"),
        ("M-SUB", (change(isr=(1, 9)),), "[9] in the ISR, not among the replicas"),
        ("M-SUB", (change(isr=(1,), eligible_leader_replicas=(8,)),), "[8] in the ELR, not among"),
        (
            "M-SUB",
            (change(isr=(1, 3), eligible_leader_replicas=(3,)),),
            "[3] in the ISR and in the ELR",
        ),
        (
            "M-SUB",
            (change(isr=(1, 2), eligible_leader_replicas=(3,)),),
            "ELR [3] beside the ISR [1, 2]",
        ),
        ("M-SUB", (change(isr=(), leader=-1),), "an empty ISR, and nobody is left"),
        ("M-PE", (partition(partition_epoch=5),), "partition epoch 5 after 0 and 1 record"),
        ("M-PE", (partition(partition_epoch=1, leader=2),), "leader 2 after 1, both in epoch 0"),
        ("M-FEN", (fencing(2), change(leader=2)), "broker 2, which is fenced, was elected"),
        (
            "M-FEN",
            (partition(1, replicas=(1, 4), isr=(1, 4)),),
            "broker 4, which is not registered",
        ),
        ("M-BE", (broker(3, epoch=2),), "broker 3 registers with epoch 2 after 3"),
        ("M-REPLAY", (change(5, isr=(1,)),), "not looked at"),
    ],
)
def test_a_broken_rule_is_told(
    tmp_path: Path, rule: str, batch: Sequence[Change], detail: str
) -> None:
    found = violations(tmp_path, batch)
    assert any(text.startswith(f"{rule} at offset 7: ") and detail in text for text in found), found


def test_a_leader_epoch_that_falls_is_told(tmp_path: Path) -> None:
    moved = (change(leader=2),)
    again = (partition(partition_epoch=2, leader_epoch=0, leader=2),)
    assert violations(tmp_path, moved, again) == [
        "M-PE at offset 8: orders-0: leader epoch 0 after 1"
    ]


def test_who_was_fenced_before_may_stay_alone(tmp_path: Path) -> None:
    """Without eligible leader replicas the last member of an ISR stays, and does not lead."""
    alone = (change(isr=(1,)),)
    assert violations(tmp_path, alone, (fencing(1), change(leader=-1))) == []


@pytest.mark.parametrize("rule", ["M-LI", "M-FEN"])
def test_a_row_of_a_block_is_judged_like_a_record(tmp_path: Path, rule: str) -> None:
    """A thousand partitions in columns, of which one is wrong."""
    made = NewPartitions.from_records([partition(index) for index in range(1, 1001)])
    isr = (2, 3) if rule == "M-LI" else (1, 3)
    good = [change(index, isr=(1, 3)) for index in range(1, 1001)]
    good[617] = change(618, isr=isr, leader=-2 if rule == "M-LI" else 2)
    before = () if rule == "M-LI" else ((fencing(2),),)
    changes = PartitionChanges.from_records(good)
    found = violations(tmp_path, (made,), *before, (changes,))
    assert [text.split(": ")[1] for text in found if text.startswith(rule)] == ["orders-618"]
