"""The replicas that this broker has, which are found by name or by id.

The metadata says which replicas must be here. `Replicas` opens and deletes their logs accordingly,
and keeps each change of a role until the broker takes it. A leader's role is in partition.py, a
follower's in replication.py; log_dirs.py chooses the directory of a log.

Source: Kafka's ReplicaManager.applyDelta.
"""

from collections.abc import Collection, Iterator
from typing import Protocol
from uuid import UUID

import numpy as np

from broker.log_dirs import directory_of, strays
from broker.partition.local_log import LocalLog
from broker.partition.partition import Change, IsrRules, Offline, Opening, Partition, Progress
from broker.parts import BrokerParts
from controller.metadata.delta import MetadataDelta
from controller.metadata.image import ResourceType
from controller.metadata.partitions import PartitionState, Rows
from controller.milestones import Step, milestone
from quorum.core.effects import Event, Opened, OpenLog
from wire.errors import ErrorCode
from wire.primitives import DIRECTORY_LOST, DIRECTORY_UNASSIGNED, ZERO_UUID

__all__ = ["DirectoryReports", "Replicas"]

_FEW_ROWS = 500  # below it, looking at each is as fast as looking for ours


class DirectoryReports(Protocol):
    """Reports to the controller in which directory each replica lies."""

    def want(self, topic_id: UUID, index: int, directory_id: UUID) -> None:
        """The replica lies there, and the controller does not know: report it."""
        ...

    def forget(self, topic_id: UUID, index: int) -> None:
        """The replica is gone: do not report it any more."""
        ...


class Replicas:
    def __init__(
        self,
        parts: BrokerParts,
        rules: IsrRules,
        reports: DirectoryReports | None = None,
    ) -> None:
        """`reports` is None where the controller does not know of directories."""
        self._cluster = parts.cluster
        self._outbox = parts.outbox
        self._log_dirs = parts.log_dirs
        self._reports = reports
        self._rules = rules
        self._moves = parts.moves
        self.changed: list[tuple[Partition, Change]] = []  # whose role has, in order
        # By name and by topic id: the image may know neither. In ZooKeeper mode a broker is told
        # to begin before it is told what the cluster looks like.
        self._hosted: dict[tuple[str, int], Partition] = {}
        self._hosted_by_id: dict[tuple[UUID, int], Partition] = {}
        self._hosted_by_log: dict[str, Partition] = {}
        self._opening = 0
        self._is_first_image = True  # what it names may have been here before the process started

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._hosted.values())

    def __len__(self) -> int:
        return len(self._hosted)

    @property
    def are_open(self) -> bool:
        """Has every log been recovered?"""
        return self._opening == 0

    def find(self, topic: str, topic_id: UUID, index: int) -> Partition | ErrorCode:
        """The local replica, or why there is none. `topic_id` counts if it is not zero.

        The id of a deleted topic is unknown, also if another topic has its name by now.
        """
        if topic_id.int:
            partition = self._hosted_by_id.get((topic_id, index))
        else:
            partition = self._hosted.get((topic, index))
        if partition is not None:
            return partition
        known = self._cluster.find(topic, topic_id, index)
        return known if isinstance(known, ErrorCode) else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def of_log(self, name: str) -> Partition | None:
        return self._hosted_by_log.get(name)

    # --- metadata ---------------------------------------------------------------------------

    def apply_all(self, now_ms: int) -> Iterator[None]:
        """Host every replica that the first image assigns to us, and no other.

        Yields after each replica: the broker then takes the changes of roles.
        """
        if self._cluster.config.is_dataless:
            return
        image, node_id = self._cluster.image, self._cluster.config.node_id
        for log in strays(self._log_dirs.found, image, node_id):
            self._outbox.trace("stray-log", log=log.log, topic_id=log.topic_id)
            self._delete(log.log, is_stray=True)
        for topic_id, index, state in image.partitions_with(node_id):
            self._apply(topic_id, index, state, now_ms)
            yield
        self._is_first_image = False

    def keep_only(self, assigned: Collection[tuple[str, int]], now_ms: int) -> None:
        """Delete every other log, whether it is open or was only found here."""
        for name, index in [key for key in self._hosted if key not in assigned]:
            self.remove(name, index, now_ms)
        logs = {f"{name}-{index}" for name, index in assigned}
        for log in self._log_dirs.logs:
            if log not in logs:
                self._outbox.trace("stray-log", log=log)
                self._delete(log)

    def apply(self, delta: MetadataDelta, now_ms: int) -> Iterator[None]:
        """Follow a later image; yields as `apply_all` does.

        Deletions come first, since a name may be used again in the same step. Configs come next,
        since min.insync.replicas decides what a smaller ISR may commit.
        """
        image = self._cluster.image
        for topic in delta.topics_deleted:
            for index, _ in topic.partitions():
                self.remove(topic.name, index, now_ms)
                yield
        self.reconfigure(delta, now_ms)
        yield
        for topic_id, index, state in image.partitions.partitions(self._rows_of_ours(delta)):
            self._apply(topic_id, index, state, now_ms)
            yield
        if len(delta.rows_changed):
            self._tell_applied(len(delta.rows_changed))

    def _tell_applied(self, count: int) -> None:
        node_id, offset = self._cluster.config.node_id, self._cluster.image.at.offset - 1
        self._outbox.emit(milestone(Step.APPLIED, count=count, broker=node_id, offset=offset))

    def _rows_of_ours(self, delta: MetadataDelta) -> Rows:
        """The rows that concern us, at least: a failed broker changes a hundred thousand."""
        rows = delta.rows_changed
        if self._cluster.config.is_dataless:
            return rows[:0]
        if len(rows) <= _FEW_ROWS:
            return rows
        table = self._cluster.image.partitions
        ours = table.has_replica(rows, self._cluster.config.node_id)
        elsewhere = np.flatnonzero(~ours)  # those that were here until now
        for at, place in zip(elsewhere.tolist(), table.places(rows[elsewhere]), strict=True):
            ours[at] = place in self._hosted_by_id
        return rows[ours]

    def _apply(self, topic_id: UUID, index: int, state: PartitionState, now_ms: int) -> None:
        partition = self._hosted_by_id.get((topic_id, index))
        name = self._cluster.topic_name(topic_id) if partition is None else partition.topic
        assert name is not None, topic_id
        self.obey(name, topic_id, index, state, now_ms)

    def obey(
        self, name: str, topic_id: UUID, index: int, state: PartitionState, now_ms: int
    ) -> None:
        """Make the replica here what `state` asks for, or remove it if it is not ours."""
        if self._cluster.config.is_dataless:
            return
        if self._cluster.config.node_id not in state.replicas:
            self.remove(name, index, now_ms)
            return
        partition = self._hosted.get((name, index))
        if partition is None:
            self._open(name, topic_id, index, state)
            return
        assert partition.topic_id == topic_id, (partition.name, partition.topic_id, topic_id)
        self._confirm_directory(partition, state)
        self._report(partition, partition.apply(state, now_ms))

    def _report(self, partition: Partition, progress: Progress) -> None:
        change = progress.change
        if change is Change.NONE:
            return
        if change in (Change.ELECTED, Change.FOLLOWS):
            self._outbox.trace(
                "partition-role",
                partition=partition.name,
                role=type(partition.role).__name__,
                leader=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                end_offset=partition.open_log.end_offset,
                high_watermark=partition.open_log.high_watermark,
            )
        self.changed.append((partition, change))

    def reconfigure(self, delta: MetadataDelta, now_ms: int) -> None:
        """Settings of topics or of this broker may have changed."""
        for partition in self.reconfigured(delta):
            settings = self._cluster.settings_of(partition.topic)
            self._report(partition, partition.reconfigure(settings, now_ms))

    def reconfigured(self, delta: MetadataDelta) -> list[Partition]:
        """Those whose settings may have changed."""
        if not delta.configs_changed:
            return []
        hosted = list(self._hosted.values())
        if any(kind == ResourceType.BROKER for kind, _ in delta.configs_changed):
            return hosted
        names = {name for kind, name in delta.configs_changed if kind == ResourceType.TOPIC}
        return [partition for partition in hosted if partition.topic in names]

    # --- logs -------------------------------------------------------------------------------

    def _open(self, name: str, topic_id: UUID, index: int, state: PartitionState) -> None:
        partition = Partition(
            topic=name,
            topic_id=topic_id,
            index=index,
            node_id=self._cluster.config.node_id,
            wanted=state,
            rules=self._rules,
            moves=self._moves,
        )
        partition.settings = self._cluster.settings_of(name)
        self._hosted[(name, index)] = partition
        self._hosted_by_id[(topic_id, index)] = partition
        self._hosted_by_log[partition.name] = partition
        assigned = self._assigned_directory(state)
        directory_id = self._log_dirs.place(partition.name, assigned)
        if directory_id is None:
            # It is to stay there, for its records may be there, and nobody is to elect it.
            partition.directory_id = self._log_dirs.lies_in(partition.name, assigned)
            self._outbox.trace(
                "partition-offline", partition=partition.name, directory=partition.directory_id
            )
            self._confirm_directory(partition, state)
            partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        partition.directory_id = directory_id
        self._opening += 1
        self._recover(partition)

    def _assigned_directory(self, state: PartitionState) -> UUID:
        """A replica that was in sync before the process started has a log in some directory. If the
        metadata does not know in which, the directory is lost until the log is found."""
        node_id = self._cluster.config.node_id
        assigned = directory_of(state, node_id)
        had_log = self._is_first_image and node_id in (*state.isr, *state.eligible_leader_replicas)
        return DIRECTORY_LOST if had_log and assigned == DIRECTORY_UNASSIGNED else assigned

    def _recover(self, partition: Partition) -> None:
        def opened(event: Event, now_ms: int) -> None:
            self._opened(partition, event, now_ms)

        self._outbox.emit(
            OpenLog(
                log=partition.name,
                token=self._outbox.expect(opened),
                topic_id=partition.topic_id,
                directory_id=partition.directory_id,
                settings=partition.settings.log,
            )
        )

    def _opened(self, partition: Partition, event: Event, now_ms: int) -> None:
        is_wanted = self._hosted.get((partition.topic, partition.index)) is partition
        if not is_wanted or not isinstance(partition.role, Opening):
            self._opening -= 1
            return  # deleted while it was being recovered, or its directory has failed
        if not isinstance(event, Opened):
            self._opening -= 1
            self._fail(partition)
            return
        if event.state.topic_id not in (ZERO_UUID, partition.topic_id):
            self._replace_stray(partition, event.state.topic_id)
            return
        self._opening -= 1
        if event.state.directory_id.int:
            partition.directory_id = event.state.directory_id
        self._confirm_directory(partition, partition.role.wanted)
        log = LocalLog(event.state, self._outbox, self._moves)
        self._report(partition, partition.opened(log, now_ms))

    def moved(self, partition: Partition, now_ms: int) -> None:
        """Its log may have been rewritten."""
        self._report(partition, partition.rewritten(now_ms))

    def save_producers(self) -> None:
        """The process ends in order."""
        for partition in self._hosted.values():
            if partition.log is not None:
                partition.log.save_producers()

    def confirm_directories(self) -> None:
        """The controller may not have been able to record any until now."""
        for partition in self._hosted.values():
            state = self._cluster.image.partition(partition.topic_id, partition.index)
            if state is not None and partition.log is not None:
                self._confirm_directory(partition, state)

    def _confirm_directory(self, partition: Partition, state: PartitionState) -> None:
        """The controller must know where the replica lies, once it is known here."""
        if self._reports is None:
            return
        assigned = directory_of(state, self._cluster.config.node_id)
        if assigned != partition.directory_id and self._cluster.image.has_directories:
            self._reports.want(partition.topic_id, partition.index, partition.directory_id)

    def _replace_stray(self, partition: Partition, found: UUID) -> None:
        """The directory belongs to a deleted topic of the same name, which was recreated while we
        were down: committed metadata says that its records are not wanted any more."""
        self._outbox.trace("stray-log", log=partition.name, topic_id=found)
        LocalLog.delete(partition.name, self._outbox, is_stray=True)
        self._recover(partition)

    def remove(self, name: str, index: int, now_ms: int) -> None:
        """Drop a replica that is not ours any more, and delete its log."""
        partition = self._hosted.pop((name, index), None)
        if partition is None:
            return
        del self._hosted_by_id[(partition.topic_id, index)]
        del self._hosted_by_log[partition.name]
        self._outbox.trace("partition-removed", partition=partition.name)
        self._report(partition, partition.close(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if self._reports is not None:
            self._reports.forget(partition.topic_id, index)
        self._delete(partition.name)

    def delete(self, name: str, index: int, now_ms: int) -> None:
        """Delete its log, even if it was only found here and never opened."""
        self.remove(name, index, now_ms)
        log = f"{name}-{index}"
        if log in self._log_dirs.logs:
            self._delete(log)

    def _delete(self, log: str, *, is_stray: bool = False) -> None:
        self._log_dirs.removed(log)
        LocalLog.delete(log, self._outbox, is_stray=is_stray)

    # --- failures ---------------------------------------------------------------------------

    def fail_directory(self, directory_id: UUID, now_ms: int) -> None:
        """Take every replica in that directory offline, until the process starts again."""
        for partition in tuple(self._hosted.values()):
            is_there = partition.directory_id == directory_id
            if is_there and not isinstance(partition.role, Offline):
                self._fail(partition)

    def _fail(self, partition: Partition) -> None:
        self._report(partition, partition.close(ErrorCode.KAFKA_STORAGE_ERROR))
