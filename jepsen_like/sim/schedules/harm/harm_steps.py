"""Steps that several schedules of harm share: what is written, what is held back, who goes down.

What the schedule does has an imperative for its name, and what it waits for has the third person.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from jepsen_like.sim.network import Message
from jepsen_like.sim.node_disk import DiskFaults
from jepsen_like.sim.schedules.production import Production
from jepsen_like.sim.schedules.scenario import Scenario
from quorum.raft.config import SnapshotSettings
from wire.batch import data_batch

__all__ = [
    "SNAPSHOTS_OFTEN",
    "comes_to_rest",
    "commits_unheard",
    "cut_off_one",
    "cut_power",
    "gets_to_work",
    "hold",
    "let_go",
    "others",
    "write",
    "write_batches",
]

SNAPSHOTS_OFTEN = SnapshotSettings(  # a few batches, and the log is cleaned
    bytes_between=500, interval_ms=0, retention_bytes=1000, retention_ms=-1
)


def others(scenario: Scenario, *nodes: int) -> list[int]:
    return [node for node in scenario.nodes if node not in nodes]


def cut_off_one(production: Production, **options: int) -> tuple[Scenario, int, int, int]:
    """Of three voters with the same log: the leader, one that follows it still, the one cut off."""
    scenario = Scenario(production, voters=3, **options)
    leader = scenario.leader()
    scenario.commits()
    follower, behind = others(scenario, leader)
    comes_to_rest(scenario)
    scenario.cut([behind])
    return scenario, leader, follower, behind


def comes_to_rest(scenario: Scenario) -> None:
    """Nothing more is written; all have the same log, and have heard what is committed."""
    scenario.quorum.stop_proposing()
    scenario.run(100)


def gets_to_work(scenario: Scenario, leader: int) -> None:
    """It has committed what it began its epoch with, and takes batches."""
    application = scenario.quorum.replicas[leader].application
    scenario.until("L-HW", lambda: application.leads_epoch is not None, f"{leader} is at work")


def write(scenario: Scenario, leader: int, records: int) -> None:
    """Each in a batch of its own: no other log can end within one."""
    quorum, host = scenario.quorum, scenario.host(leader)
    raft = quorum.replicas[leader].raft

    def propose(now_ms: int) -> None:
        for _ in range(records):
            value = quorum.world.sequence().to_bytes(8, "big")
            batch = data_batch([value], timestamp_ms=now_ms)
            quorum.proposed(host, [value], raft.append(batch, now_ms))

    scenario.note(f"{leader} is given {records} record{'s' * (records > 1)}")
    host.command(propose)


def write_batches(scenario: Scenario, leader: int, count: int = 3) -> None:
    """Of some records each, if it takes itself for the leader."""
    for _ in range(count):
        scenario.propose_if_leading(leader)


def cut_power(scenario: Scenario, node: int) -> None:
    """With it goes all that its disk has not synced; the disk is well afterwards."""
    disk = scenario.host(node).disk
    disk.faults = replace(disk.faults, keeps_unsynced=False)
    scenario.kill(node, power_loss=True)
    disk.faults = DiskFaults()


def hold(scenario: Scenario, matches: Callable[[Message], bool]) -> list[Message]:
    """Messages that match are held from now on, and no others. Returns them: the list grows."""
    held: list[Message] = []

    def takes(message: Message) -> bool:
        is_held = matches(message)
        if is_held:
            held.append(message)
        return is_held

    scenario.quorum.network.takes = takes
    return held


def let_go(scenario: Scenario, messages: Iterable[Message]) -> None:
    """These arrive at once, and nothing is held any more."""
    network = scenario.quorum.network
    network.takes = lambda _message: False
    for message in messages:
        network.schedule(message, 0)


def commits_unheard(scenario: Scenario, leader: int, by: Iterable[int], batches: int = 3) -> None:
    """The leader is given its last batches, and these followers commit them and do not hear so.

    That matters, since a node stops before it takes back what it knows to be committed. Nothing
    that the leader answers arrives at them any more: cut it off next, or kill it.
    """
    network, replicas = scenario.quorum.network, scenario.quorum.replicas
    followers = set(by)
    comes_to_rest(scenario)
    write_batches(scenario, leader, batches)
    end_offset = replicas[leader].end_offset
    scenario.until(
        "L-HW",
        lambda: all(replicas[node].end_offset == end_offset for node in followers),
        f"{sorted(followers)} have it",
    )

    def is_news(message: Message) -> bool:
        return message.source == leader and message.target in followers and not message.is_request

    scenario.note(f"no answer of {leader} arrives any more")
    network.takes = is_news
    scenario.until("L-HW", lambda: replicas[leader].high_watermark == end_offset, "it is committed")
