"""Replicas that their brokers have to delete: those of topics that go, and those that moved away.

A broker that is told to delete replicas answers which it has deleted. A replica whose broker is
down, or has refused, is ineligible until somebody tries again.

A replica that its partition has left is no longer assigned, and is known here until it is deleted
(`StateMachines.leaving`).

Source: seed 001, ReplicaStateMachine, "partition reassignment", TopicDeletionManager.
"""

from collections.abc import Collection, Iterable

from controller.zk.commands import Batch
from controller.zk.controller_context import Context
from controller.zk.state_machines import Replica, ReplicaStage, StateMachines
from wire.errors import ErrorCode
from wire.zk.control_rpc import StopReplicaRequest, StopReplicaResponse, TopicPartition

__all__ = ["ReplicaDeletions", "refusals"]


class ReplicaDeletions:
    def __init__(self, context: Context, machines: StateMachines) -> None:
        self._context = context
        self._machines = machines
        self._stages = machines.replicas

    def delete(self, replicas: Collection[Replica]) -> None:
        """Tell brokers to delete those that are offline, or could not be deleted before."""
        stages, batch = self._stages, Batch()
        for replica in stages.among(replicas, ReplicaStage.DELETION_INELIGIBLE):
            stages.become(replica, ReplicaStage.OFFLINE)
        for of, broker_id in stages.among(replicas, ReplicaStage.OFFLINE):
            stages.become((of, broker_id), ReplicaStage.DELETION_STARTED)
            if broker_id in self._context.live:
                batch.stop(broker_id, of, delete=True)
            else:
                stages.become((of, broker_id), ReplicaStage.DELETION_INELIGIBLE)
        self._context.tell(batch)

    def answered(self, broker_id: int, command: StopReplicaRequest, answer: object) -> None:
        """A broker has answered a command to delete (or never will: None)."""
        refused = refusals(answer)
        asked = [(of, broker_id) for of in command.partitions]
        for replica in self._stages.among(asked, ReplicaStage.DELETION_STARTED):
            if refused is None or replica[0] in refused:
                self._stages.become(replica, ReplicaStage.DELETION_INELIGIBLE)
            else:
                self._stages.become(replica, ReplicaStage.DELETION_SUCCESSFUL)
                self._machines.has_left(replica)

    def brokers_down(self, dead: Iterable[int]) -> None:
        """They will not answer."""
        gone = set(dead)
        leaving = [each for each in self._machines.leaving if each[1] in gone]
        asked = [*self._machines.replicas_on(gone), *leaving]
        for replica in self._stages.among(asked, ReplicaStage.DELETION_STARTED):
            self._stages.become(replica, ReplicaStage.DELETION_INELIGIBLE)

    # --- replicas that their partition has left -------------------------------------------------

    def leave(self, replicas: Collection[Replica]) -> None:
        """Have brokers stop serving them, then delete them."""
        batch = Batch()
        for of, broker_id in replicas:
            if self._machines.leave((of, broker_id)):
                batch.stop(broker_id, of, delete=False)
        self._context.tell(batch)
        self.delete(replicas)

    def is_leaving(self, of: TopicPartition) -> bool:
        """Has a broker been told to delete a replica that this partition has left?"""
        replicas = [each for each in self._machines.leaving if each[0] == of]
        return bool(self._stages.among(replicas, ReplicaStage.DELETION_STARTED))

    @property
    def is_incomplete(self) -> bool:
        return bool(self._undeleted())

    def try_again(self) -> None:
        """Tell brokers that are there (again) to delete what they have not."""
        self.delete(self._undeleted())

    def _undeleted(self) -> list[Replica]:
        replicas = [each for each in self._machines.leaving if each[1] in self._context.live]
        return self._stages.among(replicas, ReplicaStage.DELETION_INELIGIBLE)


def refusals(answer: object) -> set[TopicPartition] | None:
    """The partitions that were not stopped; None: nothing was."""
    if not isinstance(answer, StopReplicaResponse) or answer.error_code is not ErrorCode.NONE:
        return None
    return {
        TopicPartition(each.topic, each.partition)
        for each in answer.results
        if each.error_code is not ErrorCode.NONE
    }
