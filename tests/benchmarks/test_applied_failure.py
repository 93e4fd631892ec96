"""A failed broker costs the others little for each partition: so much, on any machine."""

from benchmarks.applied_failure import calls_of_a_partition

CALLS_MAX = 66  # 62, and 130 when all that changed had moved


def test_changed_partition_costs_few_calls() -> None:
    assert calls_of_a_partition() <= CALLS_MAX
