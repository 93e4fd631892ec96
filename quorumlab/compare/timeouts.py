"""The two settings under which a design is measured: its own defaults, and equal time-outs.

Defaults differ by an order of magnitude between the designs and would be mistaken for them. Equal
means: a broker, a session, a leader of the quorum are given up after the same silence. How often a
design says that it is alive stays its own matter.
"""

from collections.abc import Mapping
from typing import Literal

from quorumlab.compare.subjects import Subject

__all__ = ["EQUAL_SILENCE_MS", "Timeouts", "in_words", "settings_of", "silence_ms"]

Timeouts = Literal["equal", "defaults"]

EQUAL_SILENCE_MS = 2000  # Kafka's for a leader of the quorum; the other defaults are longer
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


def in_words(timeouts: str) -> str:
    return "equal time-outs" if timeouts == "equal" else "each design's own time-outs"


def settings_of(
    subject: Subject, timeouts: Timeouts, wanted: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Of every node. `wanted`: what the experiment needs to be otherwise."""
    if timeouts == "defaults":
        return {**_ALWAYS, **(wanted or {})}
    own = _EQUAL_ZOOKEEPER if subject.has_zookeeper else _EQUAL_QUORUM
    return {**_ALWAYS, **_EQUAL, **own, **(wanted or {})}


def silence_ms(subject: Subject, settings: Mapping[str, str]) -> int:
    """How long a broker may be silent before it is given up."""
    if subject.has_zookeeper:
        return int(settings.get("zookeeper.session.timeout.ms", _ZOOKEEPER_DEFAULT_MS))
    return int(settings.get("broker.session.timeout.ms", _BROKER_DEFAULT_MS))
