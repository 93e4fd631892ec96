"""The suites that others wrote: their words are understood, and a fast part of one passes."""

import pytest

from tests.peers import kafka_python
from tests.peers.librdkafka import told
from tests.peers.outcomes import Outcome, differences, settled
from tests.peers.sources import MissingError

SUMMARY = """\
| <MAIN>                                   |     PASSED |  10.0s  |
|\x1b[31m 0011_produce_batch    |     FAILED |   1.234s \x1b[0m|\x1b[31m at line 7\x1b[0m
|\x1b[32m 0011_produce_batch_more |     PASSED |   2.000s \x1b[0m|
|\x1b[33m 0011_produce_elsewhere |    SKIPPED |   0.000s \x1b[0m|
|\x1b[33m 0011_produce_local |    SKIPPED |   0.000s \x1b[0m| Filtered due to negative test flags
|\x1b[33m 0011_produce_secured |    SKIPPED |   0.000s \x1b[0m| Test requires SASL
"""


def test_librdkafkas_summary_is_read() -> None:
    assert told("0011_produce_batch", SUMMARY, 1) == [
        Outcome("0011_produce_batch", "failed", "at line 7"),
        Outcome("0011_produce_batch_more", "passed"),
        Outcome("0011_produce_secured", "skipped", "Test requires SASL"),
    ]
    assert told("0012_hang", "", -11) == [
        Outcome("0012_hang", "failed", "ended with -11, without a word")
    ]
    (one, *_) = told("0011_produce_batch/do_test:", SUMMARY, 1)
    assert one.test == "0011_produce_batch/do_test:"
    assert told("0004_conf", "", 0) == []  # it needs no broker


def test_second_run_of_what_failed_is_told() -> None:
    first = {name: Outcome(name, "failed", "an empty set") for name in "ab"}
    first["c"] = Outcome("c", "passed")
    again = {"a": Outcome("a", "passed"), "b": Outcome("b", "failed", "another reason")}
    assert list(settled(first, again)) == [
        Outcome("a", "passed", "at the second time; before: an empty set"),
        Outcome("b", "failed", "an empty set"),
        Outcome("c", "passed"),
    ]


def test_differences_are_in_tests_that_ran_on_both() -> None:
    ours = {"a": Outcome("a", "passed"), "b": Outcome("b", "failed"), "c": Outcome("c", "failed")}
    kafka = {"a": Outcome("a", "passed"), "b": Outcome("b", "passed")}
    assert differences(ours, kafka) == [(ours["b"], kafka["b"])]


@pytest.mark.extra
@pytest.mark.slow
def test_kafka_pythons_own_tests_of_producers_pass() -> None:
    try:
        source = kafka_python.fetch()
    except MissingError as error:
        pytest.skip(str(error))
    found = list(kafka_python.outcomes(source, "quorumlab", kafka_python.FAST))
    assert [outcome.line() for outcome in found if outcome.state != "passed"] == []
    assert len(found) == 17
