"""An operator's changes: reassignments, preferred elections, voters. Judged by none of them.

Whether they succeed is for the history's readers; what they may not do is harm the others.
"""

from collections.abc import Sequence

from jepsen_like.histories.history import Kind
from jepsen_like.histories.keys import place_of
from jepsen_like.real.clients.node_requests import Nodes, kind_of
from jepsen_like.real.clients.target import Target
from jepsen_like.real.kafka_client import NotConnected
from jepsen_like.real.layout import ClusterError
from jepsen_like.workloads.workload import Done, Wish
from wire.errors import ErrorCode
from wire.messages.endpoints import Listener
from wire.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

__all__ = ["OperatorClient"]

_LISTENER = "CONTROLLER"


class OperatorClient:
    def __init__(self, target: Target, *, timeout_seconds: float) -> None:
        self._timeout_ms = int(timeout_seconds * 1000)
        self._brokers = Nodes(target.brokers, timeout_seconds + 1.0)
        self._voters = target.voters

    def invoke(self, wish: Wish) -> Done:
        try:
            code = self._ask(wish)
        except NotConnected:
            return Done(kind=Kind.FAIL, error="not connected")
        except ClusterError as error:
            return Done(kind=Kind.INFO, error=str(error))
        error_name = None if code is ErrorCode.NONE else code.name
        return Done(kind=kind_of(code), value=wish.value, error=error_name)

    def close(self) -> None:
        self._brokers.close()

    def _ask(self, wish: Wish) -> ErrorCode:
        match wish.f:
            case "reassign":
                [(key, brokers)] = wish.value.items()
                return self._reassign(key, brokers)
            case "elect":
                return self._elect(wish.value)
            case "add-voter" | "remove-voter" if wish.value not in self._voters:
                return ErrorCode.UNSUPPORTED_VERSION  # the voters of this cluster stay
            case "add-voter":
                return self._add_voter(wish.value)
            case _:
                return self._remove_voter(wish.value)

    def _reassign(self, key: str, brokers: Sequence[int]) -> ErrorCode:
        topic, index = place_of(key)
        partition = ReassignablePartition(partition_index=index, replicas=tuple(brokers))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._timeout_ms,
            topics=(ReassignableTopic(name=topic, partitions=(partition,)),),
        )
        answer = self._brokers.ask(request, AlterPartitionReassignmentsResponse)
        if answer.error_code is not ErrorCode.NONE:
            return answer.error_code
        return answer.responses[0].partitions[0].error_code

    def _elect(self, key: str) -> ErrorCode:
        topic, index = place_of(key)
        request = ElectLeadersRequest(
            topic_partitions=(TopicPartitions(topic=topic, partitions=(index,)),),
            timeout_ms=self._timeout_ms,
        )
        answer = self._brokers.ask(request, ElectLeadersResponse)
        if answer.error_code is not ErrorCode.NONE or not answer.replica_election_results:
            return answer.error_code
        return answer.replica_election_results[0].partition_result[0].error_code

    def _add_voter(self, node: int) -> ErrorCode:
        voter = self._voters[node]
        request = AddRaftVoterRequest(
            timeout_ms=self._timeout_ms,
            voter_id=node,
            voter_directory_id=voter.directory_id,
            listeners=(Listener(name=_LISTENER, host=voter.host, port=voter.port),),
        )
        return self._brokers.ask(request, AddRaftVoterResponse).error_code

    def _remove_voter(self, node: int) -> ErrorCode:
        request = RemoveRaftVoterRequest(
            voter_id=node, voter_directory_id=self._voters[node].directory_id
        )
        return self._brokers.ask(request, RemoveRaftVoterResponse).error_code
