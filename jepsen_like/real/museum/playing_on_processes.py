"""One play of a schedule on real processes, with a bug or without: what the museum shows of it."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.museum.item import Exhibit, Item
from jepsen_like.museum.item_page import run_page
from jepsen_like.museum.playing import End, Played, end_of, played
from jepsen_like.real.museum.process_cluster import ProcessCluster
from jepsen_like.real.museum.process_quorum import QUORUM_SETTINGS, ProcessQuorum
from jepsen_like.real.museum.rig import Rig
from jepsen_like.scenarios.schedules import Beginning
from jepsen_like.scenarios.settings import ClusterSettings, ZkSettings
from jepsen_like.scenarios.stage.story import Production
from wire.zk.designs import DESIGNS
from wire.zk.switches import without

__all__ = ["ProcessComparison", "compare_on_processes", "play_on_processes", "process_page"]

if TYPE_CHECKING:
    from jepsen_like.real.museum.process_zookeeper import ProcessZooKeeper


class _Processes:
    """Begins what a schedule is played on, and ends it."""

    def __init__(self, directory: Path, plants: str) -> None:
        self._directory = directory
        self._plants = plants
        self._open = ExitStack()
        self.workload = "log"

    @property
    def beginnings(self) -> Mapping[str, Beginning]:
        return {"cluster": self.cluster, "quorum": self.quorum, "zookeeper": self.zookeeper}

    def _rig(self, settings: Mapping[str, str], **shape: Any) -> Rig:
        rig = Rig(self._directory, plants=self._plants, settings=settings, **shape)
        return self._open.enter_context(rig)

    def cluster(self, production: Production, **settings: Any) -> ProcessCluster:
        wanted = ClusterSettings(**settings)
        rig = self._rig(
            controllers=wanted.controllers,
            brokers=wanted.brokers,
            settings={
                "broker.session.timeout.ms": str(wanted.session_timeout_ms),
                "broker.heartbeat.interval.ms": str(wanted.session_timeout_ms // 10),
                "replica.lag.time.max.ms": str(wanted.lag_time_max_ms),
                "controller.quorum.fetch.timeout.ms": str(wanted.fetch_timeout_ms),
                "unclean.leader.election.interval.ms": str(wanted.session_timeout_ms),
            },
        )
        return ProcessCluster(
            production,
            rig,
            replicas=wanted.replicas,
            min_insync_replicas=wanted.min_insync_replicas,
            unclean=wanted.unclean,
        )

    def quorum(self, production: Production, **settings: Any) -> ProcessQuorum:
        """Takes the settings of a simulated quorum that matter to processes."""
        self.workload = "set"
        voters = settings["voters"]
        observers = settings.get("observers", 0)
        rig = self._rig(
            QUORUM_SETTINGS,
            controllers=voters,
            brokers=max(1, observers),
            first_voters=voters if settings.get("kraft_version", 0) else 0,
        )
        return ProcessQuorum(production, rig, observers=observers)

    def zookeeper(self, production: Production, **settings: Any) -> "ProcessZooKeeper":
        from jepsen_like.real.museum.process_zookeeper import (  # needs kazoo
            ProcessZooKeeper,
            server_properties,
        )

        wanted = ZkSettings(**settings)
        rig = self._rig(
            brokers=wanted.brokers,
            design=wanted.design,
            settings=server_properties(wanted),
        )
        design = without(DESIGNS[wanted.design], wanted.without)
        directed = ProcessZooKeeper(production, rig, design=design)
        return self._open.enter_context(directed)

    def end(self) -> None:
        self._open.close()


def play_on_processes(exhibit: Exhibit, directory: Path, *, is_red: bool) -> Played:
    """In a directory that does not exist yet, and is left for whoever wants to look."""
    plants = exhibit.plants if is_red else ""
    processes = _Processes(directory, plants)
    production = Production(
        settings=exhibit.settings if is_red else exhibit.mended,
        is_judged=not exhibit.seen or not is_red,
    )
    try:
        ended = end_of(exhibit.schedule, production, processes.beginnings)
        production.end()
    finally:
        processes.end()
    return played(
        production,
        ended,
        schedule=exhibit.schedule,
        bug=exhibit.bug,
        workload=processes.workload,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessComparison:
    exhibit: Exhibit
    red: Played
    green: Played

    def rules(self) -> list[str]:
        """All that told of the red run."""
        found = {finding.rule for finding in self.red.verdict().findings}
        return [*filter(None, [self.red.rule]), *sorted(found)]

    def not_red(self) -> Iterator[str]:
        if self.exhibit.really not in self.rules():
            yield f"not {self.exhibit.really} but {', '.join(self.rules()) or 'nothing'}"

    def not_green(self) -> Iterator[str]:
        if self.green.end is not End.HOLDS:
            yield f"{self.green.end.value} {self.green.rule} {self.green.detail}".rstrip()
        verdict = self.green.verdict()
        if verdict.outcome is Outcome.VIOLATED:
            yield "; ".join(finding.rule for finding in verdict.findings)

    @property
    def is_right(self) -> bool:
        return not [*self.not_red(), *self.not_green()]


def compare_on_processes(exhibit: Exhibit, directory: Path) -> ProcessComparison:
    """Red in DIR/red, green in DIR/green: the logs of the nodes are there afterwards."""
    assert exhibit.really, exhibit.schedule
    return ProcessComparison(
        exhibit=exhibit,
        red=play_on_processes(exhibit, directory / "red", is_red=True),
        green=play_on_processes(exhibit, directory / "green", is_red=False),
    )


def process_page(item: Item, shown: ProcessComparison) -> Iterator[str]:
    """Lines."""
    yield f"{item.id}  {item.title}  ({item.issue}), on real processes"
    yield ""
    yield f"RED, with {shown.exhibit.bug}"
    yield from run_page(shown.red, shown.exhibit.really)
    yield ""
    yield "GREEN, as shipped" if not shown.exhibit.mended else f"GREEN, {shown.exhibit.mended}"
    yield from run_page(shown.green, "")
    wrong = [*shown.not_red(), *shown.not_green()]
    yield from (f"NOT AS IT SHOULD BE: {problem}" for problem in wrong)
