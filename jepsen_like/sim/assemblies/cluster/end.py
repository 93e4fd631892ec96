"""The last check of a run: everything that was promised is there (D-ACK, D-ONE, H-IO, M-LOST).

Records are looked for only in partitions that were not excused; see partition_invariants.py.
"""

from collections import Counter

from broker.groups.offsets_topic import OFFSETS_TOPIC
from controller.metadata.image import ResourceType
from jepsen_like.sim.assemblies.cluster.clients.cluster_administrator import SETTING, Expected
from jepsen_like.sim.assemblies.cluster.cluster import Cluster
from jepsen_like.sim.assemblies.cluster.invariants.watched import Watched
from jepsen_like.sim.logs.content import Content
from jepsen_like.sim.violation import Violation
from wire.batch import records_of

__all__ = ["check_end"]


def check_end(cluster: Cluster) -> None:
    """The cluster is healed and quiet, and all logs of a partition are the same."""
    _keeps_decisions(cluster)
    for watched in cluster.partitions.watched.values():
        state = watched.state
        if state is None or watched.excused:
            continue
        values: dict[int, bytes] = {}
        for node_id in state.replicas:
            written = cluster.hosts[node_id].disk.log(watched.name).written
            values = _values(written)
            start_offset = min(written.start_offset, watched.deletable.start_offset)
            _keeps_acknowledged(watched, node_id, values, start_offset)
            _keeps_read(watched, node_id, values, start_offset)
        if cluster.options.is_idempotent and not watched.name.startswith(OFFSETS_TOPIC):
            _has_no_duplicate(watched, values)


def _keeps_decisions(cluster: Cluster) -> None:
    """M-LOST: what the operators were promised is so, and what they were refused is not."""
    image = cluster.metadata.image
    wide = cluster.wide_topics.expected.items()
    expected = {name: Expected(partitions=count) for name, count in wide}
    for name, wanted in {**cluster.admin.expected, **expected}.items():
        topic = image.topic(name)
        count = 0 if topic is None else len(list(topic.partitions()))
        setting = image.config(ResourceType.TOPIC, name).get(SETTING)
        if (count, setting) != (wanted.partitions, wanted.setting):
            raise Violation(
                "M-LOST", f"{name} has {count} partitions and {SETTING}={setting}, not {wanted}"
            )


def _values(written: Content) -> dict[int, bytes]:
    return {
        record.offset: record.value or b""
        for entry in written.entries
        for record in records_of(entry.records)
    }


def _keeps_acknowledged(
    watched: Watched, node_id: int, values: dict[int, bytes], start_offset: int
) -> None:
    """D-ACK: every record that was acknowledged with acks=all is at its offset, everywhere, from
    `start_offset` on: what lies before was deleted."""
    for batch in watched.acknowledged:
        for offset, value in enumerate(batch.values, batch.base_offset):
            if offset >= start_offset and values.get(offset) != value:
                raise Violation(
                    "D-ACK",
                    f"{watched.name} of {node_id}: {value!r} was acknowledged at {offset}, where"
                    f" there is {values.get(offset)!r}",
                )


def _keeps_read(
    watched: Watched, node_id: int, values: dict[int, bytes], start_offset: int
) -> None:
    """D-ONE: every record that was read is still there, but for those that were deleted."""
    for offset, value in watched.read.items():
        if offset >= start_offset and values.get(offset) != value:
            raise Violation(
                "D-ONE",
                f"{watched.name} of {node_id}: {value!r} was read at {offset}, where there is"
                f" {values.get(offset)!r}",
            )


def _has_no_duplicate(watched: Watched, values: dict[int, bytes]) -> None:
    """H-IO: what an idempotent producer sent is in the log once, however often it was repeated."""
    twice = [value for value, count in Counter(values.values()).items() if count > 1]
    if twice:
        raise Violation("H-IO", f"{watched.name}: {twice} stand there more than once")
