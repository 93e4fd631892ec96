"""The suites that client libraries wrote for themselves, on our nodes or on Apache Kafka's.

    python -m tests.peers kafka-python --on quorumlab
    python -m tests.peers kafka-python --on kafka
    python -m tests.peers librdkafka --on quorumlab --protocol consumer
    python -m tests.peers librdkafka --on kafka 0011 0103
    python -m tests.peers librdkafka --on kafka --again
    python -m tests.peers differences librdkafka-classic

What came out is kept in tests/peers/results, one line a test. Sources are fetched into .cache.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.peers import kafka_python, librdkafka, outcomes
from tests.peers.servers import SERVERS
from tests.peers.sources import MissingError

_SUITES = {
    "kafka-python": list(SERVERS),
    "librdkafka": [*SERVERS, librdkafka.NO_SERVER],
}
_RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    suites = parser.add_subparsers(dest="suite", required=True)
    for name, servers in _SUITES.items():
        suite = suites.add_parser(name)
        suite.add_argument("--on", choices=servers, default="quorumlab")
        suite.add_argument("tests", nargs="*", help="default: all")
        suite.set_defaults(again=False)
    suite.add_argument("--protocol", choices=librdkafka.PROTOCOLS, default="classic")
    suite.add_argument("--again", action="store_true", help="what failed, one by one")
    suites.add_parser("differences").add_argument("of", help="such as kafka-python")
    arguments = parser.parse_args()
    try:
        return _differences(arguments.of) if arguments.suite == "differences" else _run(arguments)
    except MissingError as error:
        print(f"skip: {error}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    is_librdkafka = arguments.suite == "librdkafka"
    name = f"librdkafka-{arguments.protocol}" if is_librdkafka else arguments.suite
    results = _RESULTS / f"{name}-{arguments.on}.txt"
    before = outcomes.read(results) if arguments.again else {}
    if arguments.again:
        arguments.tests = [each.test[:4] for each in before.values() if each.state == "failed"]
    seen = {}
    for outcome in _librdkafka(arguments) if is_librdkafka else _kafka_python(arguments):
        print(outcome.line(), flush=True)
        seen[outcome.test] = outcome  # a later stage may run what an earlier one skipped
    print(outcomes.summary(seen.values()))
    if arguments.again:
        outcomes.write(results, outcomes.settled(before, seen))
    elif not arguments.tests:
        _RESULTS.mkdir(exist_ok=True)
        outcomes.write(results, seen.values())
    return 0


def _kafka_python(arguments: argparse.Namespace) -> Iterable[outcomes.Outcome]:
    tests = arguments.tests or [kafka_python.ALL]
    return kafka_python.outcomes(kafka_python.fetch(), arguments.on, *tests)


def _librdkafka(arguments: argparse.Namespace) -> Iterable[outcomes.Outcome]:
    at_once = 1 if arguments.again else 3
    return librdkafka.outcomes(
        librdkafka.fetch(), arguments.on, arguments.protocol, arguments.tests, at_once=at_once
    )


def _differences(name: str) -> int:
    ours, kafka = (outcomes.read(_RESULTS / f"{name}-{server}.txt") for server in SERVERS)
    print(f"quorumlab: {outcomes.summary(ours.values())}")
    print(f"kafka: {outcomes.summary(kafka.values())}")
    for our, theirs in outcomes.differences(ours, kafka):
        print(f"{our.line()}\tKafka: {theirs.state} {theirs.reason}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
