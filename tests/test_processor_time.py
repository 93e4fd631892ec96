"""The recorded cost of the fast suite keeps its budget, and the record is of today's files."""

import pytest

from tests import processor_time

# In yardsticks. A change that would exceed it makes something else cheaper, or proves its property
# at another height (docs/testing.md).
BUDGET = 12_400
NEW_FILES = 10  # so that not every new file asks for a new record
REMEDY = "run `make cost` and commit tests/processor_time.json"


def test_recorded_cost_keeps_the_budget() -> None:
    cost = processor_time.read()
    dearest = sorted(cost.files.items(), key=lambda item: -item[1])[:10]
    assert cost.yardsticks <= BUDGET, dearest


def test_record_is_of_the_files_that_run(request: pytest.FixtureRequest) -> None:
    running = {item.nodeid.partition("::")[0] for item in request.session.items}
    assert len(running - set(processor_time.read().files)) <= NEW_FILES, REMEDY


def test_record_adds_up() -> None:
    cost = processor_time.read()
    assert 0 < sum(cost.files.values()) < cost.total, REMEDY
