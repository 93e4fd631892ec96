"""Steps that several schedules of harm begin with."""

from collections.abc import Iterable

from jepsen_like.sim.network import Message
from jepsen_like.sim.schedules.scenario import Scenario

__all__ = ["commits_unheard", "others"]


def others(scenario: Scenario, *nodes: int) -> list[int]:
    return [node for node in scenario.nodes if node not in nodes]


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
