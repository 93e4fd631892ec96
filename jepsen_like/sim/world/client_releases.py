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
_KAFKA_3_6 = ClientRelease(
    "Kafka 3.6",
    {
        "produce": 9,
        "fetch": 15,
        "list_offsets": 8,
        "metadata": 12,
        "offset_commit": 8,
        "offset_fetch": 8,
        "find_coordinator": 4,
        "describe_groups": 5,
        "init_producer_id": 4,
    },
)
OLDER: Sequence[ClientRelease] = (
    _KAFKA_3_6,
    ClientRelease(
        "Kafka 2.1",
        {
            "produce": 7,
            "fetch": 10,
            "list_offsets": 4,
            "metadata": 7,
            "offset_commit": 6,
            "offset_fetch": 5,
            "find_coordinator": 2,
            "join_group": 3,
            "heartbeat": 2,
            "sync_group": 2,
            "describe_groups": 2,
            "init_producer_id": 1,
        },
    ),
    ClientRelease(
        "Kafka 1.1",
        {
            "produce": 5,
            "fetch": 7,
            "list_offsets": 2,
            "metadata": 5,
            "offset_commit": 3,
            "offset_fetch": 3,
            "find_coordinator": 1,
            "join_group": 2,
            "heartbeat": 1,
            "sync_group": 1,
            "describe_groups": 1,
            "init_producer_id": 0,
        },
    ),
    ClientRelease(
        "kafka-python 2.0.2",
        {
            "produce": 7,
            "fetch": 4,
            "list_offsets": 1,
            "metadata": 1,
            "offset_commit": 2,
            "offset_fetch": 1,
            "find_coordinator": 0,
            "join_group": 2,
            "heartbeat": 1,
            "sync_group": 1,
            "init_producer_id": 0,  # it has no idempotent producer, but the run may
        },
    ),
)
# A client of these learns which of two topics of one name it writes to and reads.
KNOW_TOPIC_IDS = (_KAFKA_3_6,)


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
