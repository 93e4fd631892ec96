"""The only thread of a broker spends this processor time on a Metadata answer about all topics.

One broker core of three, without data, and the codec of the newest version. Three answers are
measured: the first after a broker was fenced or unfenced, which concerns every topic; one after a
change of one partition; and one after no change at all. A figure is the whole answer. Its
parameters split it into the values (`values_ms`) and their encoding (`encoding_ms`), and say what
the broker spent before it to apply the change (`applying_ms`).

    python -m benchmarks metadata-answers [PARTITIONS ...]
"""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

from benchmarks.figures import percentile, print_figure, progress
from quorum.core.effects import Reply, Request
from tests.broker.brokers import LISTENER, Brokers
from wire.api_table import api_of
from wire.apis import encode_response
from wire.messages.metadata import MetadataRequest

PARTITIONS = (1_000, 10_000, 30_000)
TOPIC_PARTITIONS = 10
ASKED, OTHER = 1, 3
SECONDS_MAX = 10.0
ROUNDS = 50


def main() -> None:
    for count in tuple(map(int, sys.argv[1:])) or PARTITIONS:
        progress(f"metadata_answers: {count:,} partitions")
        measure_all(count)


def measure_all(count: int) -> None:
    cluster = Brokers(3, is_dataless=True).start()
    for number in range(count // TOPIC_PARTITIONS):
        first = number % 3
        replicas = tuple((first + each) % 3 + 1 for each in range(3))
        cluster.create_topic(f"topic-{number:06}", *((replicas,) * TOPIC_PARTITIONS))
    is_in_sync = True

    def nothing() -> None:
        pass

    def one_partition() -> None:
        nonlocal is_in_sync
        is_in_sync = not is_in_sync
        cluster.change("topic-000007", 3, isr=(2, 3, 1) if is_in_sync else (2, 3))

    def a_broker() -> None:
        if OTHER in cluster.fenced:
            cluster.unfence(OTHER)
        else:
            cluster.fence(OTHER)

    answer = Answer(cluster)
    for name, change in (
        ("unchanged", nothing),
        ("one partition changed", one_partition),
        ("a broker changed", a_broker),
    ):
        answer.measure(f"metadata answer: {name}", change, count)


class Answer:
    def __init__(self, cluster: Brokers) -> None:
        self._cluster = cluster
        self._api = api_of(MetadataRequest)
        self._tokens = 10**9

    def measure(self, name: str, change: Callable[[], None], partitions: int) -> None:
        """The median over many answers, without the collector of garbage."""
        self._once(change)
        gc.collect()
        gc.disable()
        spent: list[tuple[float, ...]] = []
        began = time.monotonic()
        while len(spent) < ROUNDS and time.monotonic() - began < SECONDS_MAX:
            spent.append(self._once(change))
        gc.enable()
        applying, values, encoding = (median_ms(column) for column in zip(*spent, strict=True))
        print_figure(
            name,
            median_ms([values + encoding for _, values, encoding in spent]),
            "ms",
            partitions=partitions,
            topics=partitions // TOPIC_PARTITIONS,
            applying_ms=applying,
            values_ms=values,
            encoding_ms=encoding,
            answers=len(spent),
        )

    def _once(self, change: Callable[[], None]) -> tuple[float, ...]:
        """Return the time of applying, of the values and of their encoding."""
        broker = self._cluster.brokers[ASKED]
        self._cluster.deaf.add(ASKED)
        change()
        self._cluster.deaf.discard(ASKED)
        times = [time.process_time()]
        self._cluster.settle()
        times.append(time.process_time())
        self._tokens += 1
        request = Request(token=self._tokens, body=MetadataRequest(), listener=LISTENER)
        broker.receive(request, self._cluster.now_ms)
        (body,) = (each.body for each in broker.take_effects() if isinstance(each, Reply))
        times.append(time.process_time())
        encode_response(body, self._api.key, self._api.versions.newest, 1)
        times.append(time.process_time())
        return tuple(after - before for before, after in pairwise(times))


def median_ms(seconds: Sequence[float]) -> float:
    return round(percentile(seconds, 50) * 1e3, 3)
