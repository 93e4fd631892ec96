"""A client of older software asks in the newest version of each request that it knows.

A release is a whole set of versions, as some software had them, so what its requests lack
(`wire.capabilities`) fits together. A request and its answer pass the wire's codecs in that
version, whatever the rest of the run does.

Source: the ApiVersions answers of Kafka 1.1, 2.1 and 3.6, whose own clients are of that age; the
requests of kafka-python 2.0.2, which never asked for a later version of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from jepsen_like.clients.steps import Ask, Steps
from jepsen_like.sim.world.codec import InVersion
from wire.api_table import api_of

__all__ = ["KNOW_TOPIC_IDS", "NEWEST", "OLDER", "ClientRelease", "draw_release", "spoken"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ClientRelease:
    name: str
    newest: Mapping[str, int]  # by API: the newest version that it knows

    def says(self, body: object) -> object:
        """Return a request as this software sends it."""
        version = self.newest.get(api_of(type(body)).name) if self.newest else None
        return body if version is None else InVersion(body, version)


NEWEST = ClientRelease("newest", {})
_NAMES = ("Kafka 3.6", "Kafka 2.1", "Kafka 1.1", "kafka-python 2.0.2")
# By API, the newest version that each of them knows. None: it asks as this software does.
# kafka-python has no idempotent producer, but the run may.
_KNOWN: Mapping[str, tuple[int | None, ...]] = {
    "produce": (9, 7, 5, 7),
    "fetch": (15, 10, 7, 4),
    "list_offsets": (8, 4, 2, 1),
    "metadata": (12, 7, 5, 1),
    "offset_commit": (8, 6, 3, 2),
    "offset_fetch": (8, 5, 3, 1),
    "find_coordinator": (4, 2, 1, 0),
    "join_group": (None, 3, 2, 2),
    "heartbeat": (None, 2, 1, 1),
    "sync_group": (None, 2, 1, 1),
    "describe_groups": (5, 2, 1, None),
    "init_producer_id": (4, 1, 0, 0),
}


def _release(place: int) -> ClientRelease:
    known = {api: versions[place] for api, versions in _KNOWN.items()}
    newest = {api: version for api, version in known.items() if version is not None}
    return ClientRelease(_NAMES[place], newest)


OLDER: Sequence[ClientRelease] = tuple(map(_release, range(len(_NAMES))))
# A client of these learns which of two topics of one name it writes to and reads.
KNOW_TOPIC_IDS = OLDER[:1]


def draw_release(
    random: Random, share: float, among: Sequence[ClientRelease] = OLDER
) -> ClientRelease:
    """Returns an older one with the chance `share`."""
    return random.choice(among) if random.random() < share else NEWEST


def spoken(steps: Steps[Result], release: ClientRelease) -> Steps[Result]:
    """Take the same steps, as a client of that release does."""
    answer: object = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result
        if isinstance(step, Ask):
            step = replace(step, body=release.says(step.body))
        answer = yield step
