"""Steps that several schedules of harm share."""

from collections.abc import Iterable
from dataclasses import replace

from jepsen_like.sim.disk import DiskFaults
from jepsen_like.sim.network import Message
from jepsen_like.sim.schedules.scenario import Scenario
from wire.batch import data_batch

__all__ = ["commits_unheard", "is_at_work", "loses_power", "others", "write"]


def others(scenario: Scenario, *nodes: int) -> list[int]:
    return [node for node in scenario.nodes if node not in nodes]


def is_at_work(scenario: Scenario, leader: int) -> None:
    """It has committed what it began its epoch with, and takes batches."""
    application = scenario.quorum.replicas[leader].application
    scenario.until("L-HW", lambda: application.leads_epoch is not None, f"{leader} is at work")


def write(scenario: Scenario, leader: int, records: int) -> None:
    """Give the leader so many, each in a batch of its own: no other log can end within one."""
    quorum, host = scenario.quorum, scenario.host(leader)
    raft = quorum.replicas[leader].raft

    def propose(now_ms: int) -> None:
        for _ in range(records):
            value = quorum.world.sequence().to_bytes(8, "big")
            batch = data_batch([value], timestamp_ms=now_ms)
            quorum.proposed(host, [value], raft.append(batch, now_ms))

    scenario.note(f"{leader} is given {records} record{'s' * (records > 1)}")
    host.command(propose)


def loses_power(scenario: Scenario, node: int) -> None:
    """And all that its disk has not synced; the disk is well afterwards."""
    disk = scenario.host(node).disk
    disk.faults = replace(disk.faults, keeps_unsynced=False)
    scenario.kill(node, power_loss=True)
    disk.faults = DiskFaults()


def commits_unheard(scenario: Scenario, leader: int, by: Iterable[int], batches: int = 3) -> None:
    """What the leader is given now is committed by these followers, and none of them hears that.

    Whoever knows what is committed stops before it would take it back; those who do not, cannot.
    Afterwards nothing that the leader answers arrives there: cut it off, or kill it.
    """
    network, replicas = scenario.quorum.network, scenario.quorum.replicas
    followers = set(by)
    scenario.quorum.stop_proposing()
    scenario.run(100)
    for _ in range(batches):
        scenario.propose_if_leading(leader)
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
    scenario.quorum.resume_proposing()
