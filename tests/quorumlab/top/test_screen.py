"""The screen of `top` without a terminal: what is known goes in, lines come out."""

import time
from dataclasses import replace

import pytest

from controller.metadata.image import MetadataImage
from quorumlab.top.cluster_view import (
    BrokerSight,
    ClusterView,
    ControllerSight,
    Counted,
    FaultSight,
    LogEntry,
    of_image,
    of_metadata,
    rates,
)
from quorumlab.top.screen import Reader, pressed, screen_lines
from tests.controller.clusters import cluster, partition, with_topic
from wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

LOG = tuple(
    LogEntry(n, f"{n} 10:00:00 PARTITION_CHANGE t-{n} isr=[1,2]", f"t-{n}") for n in range(30)
)
VIEW = ClusterView(
    cluster="AAAA in /data",
    time="10:00:00",
    active_controller=101,
    epoch=4,
    controllers=(
        ControllerSight(101, "leader", 4, 0, 0),
        ControllerSight(102, "follower", 4, 7, 250),
        ControllerSight(103, "dead", answers=False),
    ),
    brokers=(
        BrokerSight(1, "running", 12.0, 34_567.0),
        BrokerSight(2, "no answer", answers=False),
        BrokerSight(3, "running"),
    ),
    log=LOG,
    log_end=30,
)


def image(count: int, *, behind: int = 0, offline: int = 0) -> MetadataImage:
    """Partitions of a topic; the last ones lack a broker, and those at the very end a leader."""
    states = [partition(index) for index in range(count - behind - offline)]
    states += [partition(len(states) + n, isr=(1, 3)) for n in range(behind)]
    states += [partition(len(states) + n, isr=(2,), leader=-1) for n in range(offline)]
    return with_topic(cluster(1, 2, 3), *states)


def texts(
    view: ClusterView,
    reader: Reader = Reader(),  # noqa: B008
    *,
    width: int = 80,
    height: int = 24,
) -> list[str]:
    lines = screen_lines(view, reader, width=width, height=height)
    return [line.text for line in lines]


# --- screens ---------------------------------------------------------------------------------


def test_screen_of_80_by_24_is_as_a_person_sees_it() -> None:
    view = replace(VIEW, partitions=of_image(image(6, behind=2, offline=1)))
    chaos = (FaultSight("kill 2", 3.2), FaultSight("pause 103", 0.4))
    assert texts(replace(view, chaos="safety", faults=chaos)) == [
        "quorumlab top  10:00:00  AAAA in /data",
        "controller 101, epoch 4  6 partitions  3 under-replicated  1 without a leader",
        "missing: controllers 103, brokers 2",
        "chaos run, safety: kill 2 for 3 s, pause 103 for 0 s",
        "CONTROLLER  ROLE      EPOCH  LAG  LAG MS",
        "103         dead      -      -    -",
        "101         leader    4      0    0",
        "102         follower  4      7    250",
        "BROKER  STATE      LED  OUT ISR  REQ/S  BYTES/S",
        "2       no answer  0    2        -      -",
        "1       running    5    1        12     34.6k",
        "3       running    0    1        -      -",
        "PARTITION  LEADER  ISR    REPLICAS  TROUBLE",
        "t-5        -       2      1,2,3     no leader",
        "t-3        1       1,3    1,2,3     not in sync: 2",
        "t-4        1       1,3    1,2,3     not in sync: 2",
        "t-0        1       1,2,3  1,2,3",
        "... 2 more",
        "METADATA LOG, end 30  j/k select, Enter why, q quit",
        *(f"  {n} 10:00:00 PARTITION_CHANGE t-{n} isr=[1,2]" for n in range(25, 29)),
        "> 29 10:00:00 PARTITION_CHANGE t-29 isr=[1,2]",
    ]


def test_narrow_screen_keeps_what_is_wrong() -> None:
    view = replace(VIEW, partitions=of_image(image(6, behind=2, offline=1)))
    lines = screen_lines(view, Reader(), width=40, height=24)
    assert [line.text for line in lines][:13] == [
        "quorumlab top  10:00:00  AAAA in /data",
        "controller 101, epoch 4  6 partitions  3",
        "under-replicated  1 without a leader",
        "missing: controllers 103, brokers 2",
        "CONTROLLER ROLE     EPOCH LAG LAG MS",
        "103        dead     -     -   -",
        "101        leader   4     0   0",
        "102        follower 4     7   250",
        "BROKER STATE     LED OUT ISR REQ/S BYTES",
        "2      no answer 0   2       -     -",
        "1      running   5   1       12    34.6k",
        "3      running   0   1       -     -",
        "PARTITION LEADER ISR   REPLICAS TROUBLE",
    ]


@pytest.mark.parametrize("height", [3, 10, 24, 60])
@pytest.mark.parametrize("width", [1, 40, 80])
def test_no_screen_is_larger_than_the_terminal(width: int, height: int) -> None:
    view = replace(VIEW, partitions=of_image(image(300, behind=250)), problem="x" * 200)
    for reader in (Reader(), Reader(asks_why=LOG[3])):
        lines = screen_lines(view, reader, width=width, height=height, story=["word " * 300])
        assert len(lines) <= height
        assert max(len(line.text) for line in lines) <= width


def test_nodes_in_trouble_are_shown_where_not_all_fit() -> None:
    brokers = [BrokerSight(n, "running") for n in range(1, 40)]
    brokers.append(BrokerSight(40, "no answer", answers=False))
    lines = texts(replace(VIEW, brokers=brokers))
    assert "40      no answer  -    -        -      -" in lines
    assert any(line.startswith("... 3") for line in lines)


def test_what_others_wrote_moves_no_cursor() -> None:
    log = (LogEntry(1, "1 CONFIG \x1b[2J\n", ""),)
    assert texts(replace(VIEW, log=log))[-1] == "> 1 CONFIG ?[2J?"


def test_log_that_a_snapshot_has_just_replaced_says_so() -> None:
    assert texts(replace(VIEW, log=()))[-1] == "nothing but no-ops since the newest snapshot"


def test_nothing_is_known_at_first() -> None:
    assert "partitions are not known" in texts(ClusterView())[1]


def test_ten_thousand_partitions_take_less_than_ten_milliseconds() -> None:
    """The best of some: others use this machine, too."""
    metadata = image(10_000, behind=3000, offline=50)
    took = []
    for _ in range(10):
        began = time.process_time()
        lines = screen_lines(
            replace(VIEW, partitions=of_image(metadata)), Reader(), width=80, height=24
        )
        took.append(time.process_time() - began)
        assert len(lines) == 24
    assert min(took) < 0.010


# --- keys ------------------------------------------------------------------------------------


def test_arrows_select_and_the_end_is_followed_again() -> None:
    reader = pressed(pressed(Reader(), "k", LOG), "up", LOG)
    assert reader.selected == 27
    longer = (*LOG, LogEntry(30, "30 new", ""))
    assert pressed(reader, "enter", longer).asks_why == LOG[27], "new records do not move it"
    for _ in range(2):
        reader = pressed(reader, "j", LOG)
    assert reader.selected is None
    assert pressed(reader, "enter", longer).asks_why == longer[-1]


def test_story_is_shown_scrolled_and_left() -> None:
    reader = pressed(Reader(), "enter", LOG)
    story = [f"line {n}" for n in range(50)]

    def shown(reader: Reader) -> list[str]:
        lines = screen_lines(VIEW, reader, width=80, height=10, story=story)
        return [line.text for line in lines]

    assert shown(reader)[3].startswith("why t-29")
    assert "line 0" in shown(reader)
    assert "line 0" not in shown(pressed(pressed(reader, "j", LOG), "page down", LOG))
    scrolled = reader
    for _ in range(9):
        scrolled = pressed(scrolled, "page down", LOG, story_length=52)
    assert scrolled.scrolled == 51
    assert pressed(reader, "enter", LOG) == Reader()
    assert pressed(reader, "q", LOG).is_done


def test_keys_without_a_log_do_nothing() -> None:
    assert pressed(Reader(), "enter", ()) == pressed(Reader(), "x", LOG) == Reader()


# --- numbers ---------------------------------------------------------------------------------


def test_rates_need_two_readings_of_one_life() -> None:
    before, now = Counted(10.0, 100, 5000), Counted(12.0, 104, 9000)
    assert rates(before, now) == (2.0, 2000.0)
    assert rates(None, now) == rates(before, None) == rates(now, now) == (None, None)
    assert rates(now, Counted(14.0, 3, 10)) == (None, None), "the broker has started anew"
    assert rates(Counted(0.0, None, 10), Counted(1.0, None, 20)) == (None, 10.0)


def test_log_and_broker_tell_the_same_of_partitions() -> None:
    states = [((1, 2, 3), 1), ((1, 3), 1), ((2,), -1)]
    response = MetadataResponse(
        topics=(
            MetadataResponseTopic(
                name="t",
                partitions=tuple(
                    MetadataResponsePartition(
                        partition_index=n, leader_id=leader, replica_nodes=(1, 2, 3), isr_nodes=isr
                    )
                    for n, (isr, leader) in enumerate(states)
                ),
            ),
        )
    )
    told, replayed = of_metadata(response), of_image(image(3, behind=1, offline=1))
    assert told.listed == replayed.listed
    assert [each.name for each in told.listed] == ["t-2", "t-1", "t-0"]
    for broker in (1, 2, 3):
        assert told.led.get(broker, 0) == replayed.led[broker]
        assert told.out_of_isr.get(broker, 0) == replayed.out_of_isr[broker]
    assert (told.count, told.offline, told.under_replicated) == (3, 1, 2)
