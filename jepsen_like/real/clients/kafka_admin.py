"""Topics, configs, and an operator's changes, in Kafka's own protocol.

What a request goes to, and why, is told in `jepsen_like.clients.admin_client`. An operator
reassigns partitions, elects preferred leaders, adds and removes voters. No checker judges whether
that succeeds; what it may not do is harm the others.
"""

from collections.abc import Sequence

from jepsen_like.clients.admin_client import (
    ALL_TOPICS,
    creation,
    deletion,
    elements_in,
    kind_of,
    reassignment,
    register_in,
    register_query,
    register_write,
)
from jepsen_like.histories.history import Kind, place_of
from jepsen_like.real.clients.agent import Agent
from jepsen_like.real.clients.target import Nodes, Target, carried_out
from jepsen_like.workloads.metadata_workloads import PREFIX
from jepsen_like.workloads.workload import Done, NewTopic, Wish
from wire.errors import ErrorCode
from wire.messages.configs import DescribeConfigsResponse, IncrementalAlterConfigsResponse
from wire.messages.endpoints import Listener
from wire.messages.metadata import MetadataResponse
from wire.messages.partitions import (
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from wire.messages.topics import CreateTopicsResponse, DeleteTopicsResponse
from wire.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

__all__ = ["AdminClient", "OperatorClient", "create_topic"]

Ended = tuple[ErrorCode, str | None]


class AdminClient:
    def __init__(self, target: Target, *, timeout_seconds: float) -> None:
        self._timeout_ms = int(timeout_seconds * 1000)
        self._brokers = target.of_brokers(timeout_seconds + 1.0)
        self._controllers = target.of_controllers(timeout_seconds + 1.0)
        self._agent = Agent(target, timeout_seconds=timeout_seconds)
        self._of_brokers = target.brokers

    def invoke(self, wish: Wish) -> Done:
        return carried_out(lambda: self._invoke(wish), reads=wish.f.startswith("read"))

    def close(self) -> None:
        self._brokers.close()
        self._controllers.close()

    def _invoke(self, wish: Wish) -> Done:
        match wish:
            case Wish(f="write", value=[topic, value]):
                return self._changed(wish, self._write(topic, value))
            case Wish(f="add", value=str(name)):
                new = NewTopic(name=name, partitions=1, replication_factor=1)
                return self._changed(wish, create_topic(self._brokers, new, self._timeout_ms))
            case Wish(f="remove", value=str(name)):
                return self._changed(wish, self._delete(name))
            case Wish(f="read" | "read-stale", value=[topic, _], extra={"node": node}):
                return self._describe(topic, node)
            case Wish(f="read" | "read-stale", value=None, extra={"node": node}):
                return self._list(node)
            case Wish(f="read", value=[topic, _]):
                return self._agent.read_committed(topic)
            case _:
                return Done(kind=Kind.FAIL, error=f"this client knows no {wish.f}")

    def _changed(self, wish: Wish, ended: Ended) -> Done:
        code, message = ended
        if code is ErrorCode.NONE:
            return Done(kind=Kind.OK, value=wish.value)
        return Done(kind=kind_of(code), error=f"{code.name}: {message or ''}")

    def _write(self, topic: str, value: int) -> Ended:
        answer = self._controllers.ask(
            register_write(topic, value),
            IncrementalAlterConfigsResponse,
            node=self._agent.active_controller(),
        )
        return answer.responses[0].error_code, answer.responses[0].error_message

    def _delete(self, name: str) -> Ended:
        answer = self._brokers.ask(deletion(name, self._timeout_ms), DeleteTopicsResponse)
        return answer.responses[0].error_code, answer.responses[0].error_message

    def _describe(self, topic: str, node: int) -> Done:
        answer = self._brokers.ask(register_query(topic), DescribeConfigsResponse, node=node)
        return register_in(answer, topic, node)

    def _list(self, node: int) -> Done:
        if node not in self._of_brokers:
            return self._agent.topics(node, PREFIX)
        return elements_in(self._brokers.ask(ALL_TOPICS, MetadataResponse, node=node), node)


def create_topic(brokers: Nodes, new: NewTopic, timeout_ms: int) -> Ended:
    answer = brokers.ask(creation(new, timeout_ms), CreateTopicsResponse)
    return answer.topics[0].error_code, answer.topics[0].error_message


_LISTENER = "CONTROLLER"


class OperatorClient:
    def __init__(self, target: Target, *, timeout_seconds: float) -> None:
        self._timeout_ms = int(timeout_seconds * 1000)
        self._brokers = target.of_brokers(timeout_seconds + 1.0)
        self._voters = target.voters

    def invoke(self, wish: Wish) -> Done:
        return carried_out(lambda: self._invoke(wish))

    def _invoke(self, wish: Wish) -> Done:
        code = self._ask(wish)
        error = None if code is ErrorCode.NONE else code.name
        return Done(kind=kind_of(code), value=wish.value, error=error)

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
        request = reassignment(key, brokers, self._timeout_ms)
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
