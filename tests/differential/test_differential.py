"""Hundreds of requests over every API, valid and not: ours answers as Apache Kafka does.

What differs is in known.toml, with its reason. Other seeds, and more requests, by
`python -m tests.differential`.
"""

from pathlib import Path

from tests.differential.exchanging import Run
from tests.differential.sides import both_sides
from tests.kafka.interop import needs_kafka

pytestmark = needs_kafka

SEED, REQUESTS = 2, 600


def test_every_answer_is_kafkas_or_known_to_differ(tmp_path: Path) -> None:
    print(f"again: python -m tests.differential --seed {SEED} --requests {REQUESTS}")
    with both_sides(tmp_path) as sides:
        run = Run(SEED, *sides)
        told = [line for exchange in run.exchanges(REQUESTS) for line in run.judged(exchange)]
    assert not told, "\n".join(told)
    unseen = [str(row) for row in run.explained.unseen()]
    assert not unseen, "these rows of known.toml explain nothing any more: " + "\n".join(unseen)
