"""Random members of the consumer protocol, and coordinators that die: no partition has two owners
in one epoch, and an offset that was committed is never forgotten."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from broker.config import GroupConfig
from tests.broker.groups.consumer.modern_members import ModernConsumer
from tests.broker.groups.test_random import ACTIONS, CONSUMERS_MAX, Run
from tests.examples import dear
from wire.metadata_records import FeatureLevelRecord


class ModernRun(Run):
    """As of the classic protocol, but for what members say."""

    config = GroupConfig(consumer_session_timeout_ms=6000)

    def __init__(self) -> None:
        super().__init__()
        self.brokers.write(FeatureLevelRecord(name="group.version", feature_level=1))

    def come(self, choice: int) -> None:
        taken = {consumer.instance_id for consumer in self.consumers}
        instance_id = (None, "i1", "i2")[choice % 3]
        if len(self.consumers) < CONSUMERS_MAX:
            self.count += 1
            name = f"m{self.count}"
            free = None if instance_id in taken else instance_id
            self.consumers.append(ModernConsumer(self.brokers, self.promises, name, free))


@dear(10)
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 7)), min_size=10, max_size=50))
def test_no_partition_has_two_owners_and_no_commit_is_forgotten(
    steps: list[tuple[Callable[[Run, int], None], int]],
) -> None:
    run = ModernRun()
    run.come(0)
    run.come(1)
    for act, choice in steps:
        getattr(run, act.__name__)(choice)
    run.finish()
