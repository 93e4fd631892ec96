"""The subjects of a comparison: designs, engines that replicate the quorum's log, and time-outs.

A design is measured under its own default time-outs and under equal ones. Defaults differ by an
order of magnitude between the designs and would be mistaken for them. With equal ones a broker, a
session and a leader of the quorum are given up after the same silence. Each design still decides
how often it says that it is alive.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from jepsen_like.real.runs.outcome import ADMITTED, whose_document
from quorum.raftos.engines import NATIVE
from quorumlab.mode_config import WITHOUT
from wire.zk.designs import DESIGNS

__all__ = [
    "ALL_DESIGNS",
    "QUORUM",
    "Subject",
    "Timeouts",
    "as_shown",
    "in_words",
    "settings_of",
    "silence_ms",
    "subject_named",
    "subjects",
]

QUORUM = "quorum"
ALL_DESIGNS = (*DESIGNS, QUORUM)  # the oldest first
Timeouts = Literal["equal", "defaults"]

EQUAL_SILENCE_MS = 2000  # Kafka's for a leader of the quorum; the other defaults are longer
_WITHOUT = " without "  # in the name of a subject
_ZOOKEEPER_DEFAULT_MS = 18_000
_BROKER_DEFAULT_MS = 9_000

_ALWAYS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",  # leaders stay where the experiment has put them
}
_EQUAL: Mapping[str, str] = {
    "controller.socket.timeout.ms": str(EQUAL_SILENCE_MS),
    "quorumlab.reassignment.wake.ms": str(EQUAL_SILENCE_MS),
    "replica.fetch.backoff.ms": "100",
    "replica.lag.time.max.ms": "3000",
}
_EQUAL_ZOOKEEPER: Mapping[str, str] = {"zookeeper.session.timeout.ms": str(EQUAL_SILENCE_MS)}
_EQUAL_QUORUM: Mapping[str, str] = {
    "broker.session.timeout.ms": str(EQUAL_SILENCE_MS),
    "broker.heartbeat.interval.ms": "400",
    "controller.quorum.fetch.timeout.ms": str(EQUAL_SILENCE_MS),
    # Its records tell standbys that time goes by: counted, they would be taken for work.
    "metadata.max.idle.interval.ms": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    design: str
    engine: str = NATIVE
    without: str = ""  # the switch that is off (`wire.zk.switches`)

    @property
    def name(self) -> str:
        if self.without:
            return f"{self.design}{_WITHOUT}{self.without}"
        return self.design if self.engine == NATIVE else f"{self.design}/{self.engine}"

    @property
    def has_zookeeper(self) -> bool:
        return self.design != QUORUM

    @property
    def has_controller(self) -> bool:
        return not self.has_zookeeper or DESIGNS[self.design].has_controller

    @property
    def admits_loss(self) -> str:
        """Returns why the design's document says that it may lose acknowledged records; else
        nothing."""
        return ADMITTED.get(whose_document(self.design, self.engine), {}).get("lost-write", "")


def subjects(designs: Sequence[str], engines: Sequence[str]) -> Iterator[Subject]:
    """Yields subjects in the order of ALL_DESIGNS; only the quorum has a choice of engines."""
    for design in ALL_DESIGNS:
        if design not in designs:
            continue
        for engine in engines if design == QUORUM else (NATIVE,):
            yield Subject(design=design, engine=engine)


def subject_named(name: str) -> Subject:
    name, _, without = name.partition(_WITHOUT)
    design, _, engine = name.partition("/")
    return Subject(design=design, engine=engine or NATIVE, without=without)


def as_shown(name: str) -> tuple[int, str]:
    """Sorts names of subjects for a reader: the quorum first, then from the newest design back."""
    return -ALL_DESIGNS.index(subject_named(name).design), name


def in_words(timeouts: str) -> str:
    return "equal time-outs" if timeouts == "equal" else "each design's own time-outs"


def settings_of(
    subject: Subject, timeouts: Timeouts, wanted: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """The settings of every node. `wanted`: what the experiment needs to be otherwise."""
    always = {**_ALWAYS, WITHOUT: subject.without}
    if timeouts == "defaults":
        return {**always, **(wanted or {})}
    own = _EQUAL_ZOOKEEPER if subject.has_zookeeper else _EQUAL_QUORUM
    return {**always, **_EQUAL, **own, **(wanted or {})}


def silence_ms(subject: Subject, settings: Mapping[str, str]) -> int:
    """Returns how long a broker may be silent before it is given up."""
    if subject.has_zookeeper:
        return int(settings.get("zookeeper.session.timeout.ms", _ZOOKEEPER_DEFAULT_MS))
    return int(settings.get("broker.session.timeout.ms", _BROKER_DEFAULT_MS))
