"""Each API: what is refused, what goes on with less, and what is hidden. Alice asks."""

from importlib import import_module
from typing import Any

import pytest

from controller.authorization.rules import RULES
from controller.metadata.security import ON_CLUSTER, Operation
from controller.refusals import REFUSALS
from tests.controller.authorization.entries import (
    HIDDEN,
    HIDDEN_ID,
    SEEN,
    SEEN_ID,
    UNKNOWN_ID,
    Stand,
    acl,
    on_cluster,
    on_group,
)
from tests.controller.clusters import heartbeat
from wire.api_table import APIS, CONTROL_RPCS, api_of
from wire.apis import encode_response
from wire.errors import ErrorCode
from wire.message import replace
from wire.messages import FAMILIES, configs, fetching, metadata, topics
from wire.messages.features import UpdateFeaturesRequest
from wire.messages.log_dirs import DescribeLogDirsRequest
from wire.messages.registration import EnvelopeRequest
from wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from wire.messages.voters import DescribeQuorumRequest, DescribeQuorumResponse
from wire.primitives import OPERATIONS_OMITTED
from wire.zk import control_rpc

# Those are opened, or answered, before any core sees them.
OF_THE_CONNECTION = (EnvelopeRequest, SaslHandshakeRequest, SaslAuthenticateRequest)
O = Operation  # noqa: E741 - as in the modules
TOPIC_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CLUSTER_ERROR = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
NONE = ErrorCode.NONE
BOTH = (SEEN, HIDDEN)


def test_every_api_has_a_rule() -> None:
    modules = {api: name for name, family in FAMILIES.items() for api in family}
    asked = {
        getattr(import_module(f"wire.messages.{modules[api.name]}"), f"{api.title}Request")
        for api in APIS
    }
    asked |= {getattr(control_rpc, f"{api.title}Request") for api in CONTROL_RPCS}
    assert RULES.keys() == asked - set(OF_THE_CONNECTION)


class Nothing:
    """A request for nothing at all."""

    def __getattr__(self, name: str) -> tuple[()]:
        return ()


@pytest.mark.parametrize("kind", REFUSALS, ids=lambda kind: kind.__name__)
def test_refusal_is_an_answer_of_its_api(kind: type) -> None:
    api = api_of(kind)
    answer = REFUSALS[kind](Nothing(), CLUSTER_ERROR, "no")
    assert type(answer).__name__ == f"{api.title}Response"
    assert encode_response(answer, api.key, api.versions.newest, 1)


# --- the cluster ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "operation"),
    [
        (heartbeat(1, 0, 0), O.CLUSTER_ACTION),
        (control_rpc.UpdateMetadataRequest(client_id=1, ack_timeout_ms=1), O.CLUSTER_ACTION),
        (control_rpc.LeaderAndIsrRequest(client_id=1, ack_timeout_ms=1), O.CLUSTER_ACTION),
        (control_rpc.StopReplicaRequest(client_id=1, ack_timeout_ms=1), O.CLUSTER_ACTION),
        (control_rpc.AlterIsrRequest(broker_id=1, broker_epoch=1), O.CLUSTER_ACTION),
        (fetching.FetchSnapshotRequest(topics=()), O.CLUSTER_ACTION),
        (fetching.FetchRequest(max_wait_ms=0, topics=()), O.CLUSTER_ACTION),
        (UpdateFeaturesRequest(feature_updates=()), O.ALTER),
        (DescribeQuorumRequest(topics=()), O.DESCRIBE),
        (DescribeLogDirsRequest(), O.DESCRIBE),
        (configs.ListConfigResourcesRequest(), O.DESCRIBE_CONFIGS),
        (metadata.DescribeClusterRequest(), O.ALTER),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, Operation) else value.name,
)
def test_request_of_the_cluster_wants_one_operation_of_it(body: Any, operation: Operation) -> None:
    """Those of the ZooKeeper designs too: KIP-497, "requires CLUSTER_ACTION permission"."""
    others = [on_cluster(each) for each in Operation if each not in (O.ALL, operation)]
    if operation is O.DESCRIBE:  # which others imply
        others = [on_cluster(O.CLUSTER_ACTION), on_cluster(O.ALTER_CONFIGS)]
    if operation is O.DESCRIBE_CONFIGS:
        others = [on_cluster(O.DESCRIBE), on_cluster(O.ALTER)]
    stand = Stand(*others)
    refused: Any = stand.control(body, "served")
    assert (refused.error_code, stand.given) == (CLUSTER_ERROR, None)
    allowed = Stand(on_cluster(operation))
    assert allowed.control(body, "served") == "served"
    assert allowed.given is body


def test_what_a_broker_passes_on_is_judged_by_the_controller() -> None:
    body = DescribeQuorumRequest(topics=())
    answer = DescribeQuorumResponse()
    assert Stand().ask(body, answer) is answer
    assert Stand().control(body, answer) is not answer


@pytest.mark.parametrize(
    ("acls", "operations"),
    [
        ((), 0),
        ((on_cluster(O.CREATE),), 0),  # who may not look is told nothing
        ((on_cluster(O.ALTER),), 1 << O.ALTER | 1 << O.DESCRIBE),
        ((on_cluster(O.ALL),), ON_CLUSTER),
    ],
)
def test_cluster_tells_what_may_be_done_to_it(acls: tuple[Any, ...], operations: int) -> None:
    stand = Stand(*acls)
    body = metadata.DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer: Any = stand.ask(body, metadata.DescribeClusterResponse(cluster_id="c"))
    assert (answer.cluster_id, answer.cluster_authorized_operations) == ("c", operations)


# --- topics -----------------------------------------------------------------------------------


def described(*names: str | None, bits: int = OPERATIONS_OMITTED) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(
        topics=tuple(
            metadata.MetadataResponseTopic(name=name, topic_authorized_operations=bits)
            for name in names
        )
    )


def by_name(*names: str) -> tuple[metadata.MetadataRequestTopic, ...]:
    return tuple(metadata.MetadataRequestTopic(name=name) for name in names)


def told(answer: Any) -> list[tuple[str | None, ErrorCode]]:
    return [(topic.name, topic.error_code) for topic in answer.topics]


def test_all_topics_are_those_that_may_be_described() -> None:
    stand = Stand(acl(O.READ))
    assert told(stand.ask(metadata.MetadataRequest(), described(*BOTH))) == [(SEEN, NONE)]
    everything = described(*BOTH)
    every: Any = Stand(acl(O.READ, name="*")).ask(metadata.MetadataRequest(), everything)
    assert every.topics is everything.topics


def test_topic_that_may_not_be_described_is_refused_by_its_name_there_or_not() -> None:
    stand = Stand(acl(O.DESCRIBE), auto_creates=True)
    body = metadata.MetadataRequest(topics=by_name(HIDDEN, SEEN, "missing"))
    assert told(stand.ask(body, described(SEEN))) == [
        (SEEN, NONE),
        (HIDDEN, TOPIC_ERROR),
        ("missing", TOPIC_ERROR),
    ]
    assert stand.given == metadata.MetadataRequest(topics=by_name(SEEN))


def test_topic_id_is_no_secret_and_its_name_is() -> None:
    stand = Stand()
    asked = tuple(
        metadata.MetadataRequestTopic(topic_id=topic_id) for topic_id in (HIDDEN_ID, UNKNOWN_ID)
    )
    unknown = metadata.MetadataResponse(
        topics=(
            metadata.MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=UNKNOWN_ID
            ),
        )
    )
    answer: Any = stand.ask(metadata.MetadataRequest(topics=asked), unknown)
    assert stand.given == metadata.MetadataRequest(topics=asked[1:])
    assert [(each.error_code, each.name, each.topic_id) for each in answer.topics] == [
        (ErrorCode.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID),
        (TOPIC_ERROR, None, HIDDEN_ID),
    ]


@pytest.mark.parametrize(
    ("acls", "creates", "may"),
    [
        ((), True, False),
        ((), False, True),  # nobody would create it
        ((on_cluster(O.CREATE),), True, True),
        ((acl(O.CREATE, name="new"),), True, True),
    ],
)
def test_topic_that_would_be_created_wants_create(
    acls: tuple[Any, ...], creates: bool, may: bool
) -> None:
    stand = Stand(acl(O.DESCRIBE, name="*"), *acls, auto_creates=creates)
    body = metadata.MetadataRequest(topics=by_name("new", SEEN))
    stand.ask(body, described())
    assert isinstance(stand.given, metadata.MetadataRequest)
    assert stand.given.topics == by_name("new", SEEN) if may else by_name(SEEN)


def test_topics_tell_what_may_be_done_to_them() -> None:
    stand = Stand(acl(O.WRITE))
    body = metadata.MetadataRequest(
        topics=by_name(SEEN),
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    answer: Any = stand.ask(body, described(SEEN, bits=3400))
    (topic,) = answer.topics
    assert topic.topic_authorized_operations == 1 << O.WRITE | 1 << O.DESCRIBE
    assert answer.cluster_authorized_operations == 0


@pytest.mark.parametrize(
    ("names", "narrowed", "refused"),
    [((), (SEEN,), []), (BOTH, (SEEN,), [(HIDDEN, TOPIC_ERROR)])],
)
def test_partitions_are_described_page_by_page_of_what_may_be_seen(
    names: tuple[str, ...], narrowed: tuple[str, ...], refused: list[Any]
) -> None:
    stand = Stand(acl(O.DESCRIBE))
    asked = tuple(metadata.TopicRequest(name=name) for name in names)
    answer: Any = stand.ask(
        metadata.DescribeTopicPartitionsRequest(topics=asked),
        metadata.DescribeTopicPartitionsResponse(
            topics=(metadata.DescribeTopicPartitionsResponseTopic(name=SEEN),)
        ),
    )
    assert isinstance(stand.given, metadata.DescribeTopicPartitionsRequest)
    assert tuple(topic.name for topic in stand.given.topics) == narrowed
    assert told(answer) == [(SEEN, NONE), *refused]
    assert answer.topics[0].topic_authorized_operations == 1 << O.DESCRIBE


def test_of_all_topics_none_may_be_seen() -> None:
    body = metadata.DescribeTopicPartitionsRequest(topics=())
    assert Stand().ask(body) == metadata.DescribeTopicPartitionsResponse()


@pytest.mark.parametrize("named", [(), tuple(metadata.TopicRequest(name=name) for name in BOTH)])
def test_cursor_at_a_hidden_topic_goes_on_at_the_next_that_is_seen(
    named: tuple[metadata.TopicRequest, ...],
) -> None:
    cursor = metadata.Cursor(topic_name=HIDDEN, partition_index=1)
    body = metadata.DescribeTopicPartitionsRequest(topics=named, cursor=cursor)
    stand = Stand(acl(O.DESCRIBE))
    stand.ask(body, metadata.DescribeTopicPartitionsResponse())
    assert stand.given == replace(body, topics=(metadata.TopicRequest(name=SEEN),), cursor=None)

    cursor = metadata.Cursor(topic_name=SEEN, partition_index=0)
    stand = Stand(acl(O.DESCRIBE, name=HIDDEN))
    stand.ask(replace(body, cursor=cursor), metadata.DescribeTopicPartitionsResponse())
    assert stand.given is None, "a request that names no topics asks for all"


def test_cursor_that_is_not_among_the_topics_is_left_to_be_refused() -> None:
    named = tuple(metadata.TopicRequest(name=name) for name in BOTH)
    cursor = metadata.Cursor(topic_name="other", partition_index=0)
    body = metadata.DescribeTopicPartitionsRequest(topics=named, cursor=cursor)
    stand = Stand(acl(O.DESCRIBE))
    stand.ask(body, metadata.DescribeTopicPartitionsResponse())
    assert stand.given == replace(body, topics=(metadata.TopicRequest(name=SEEN),))


def test_topic_is_created_by_who_may_create_it_and_shown_to_who_may_ask_for_its_configs() -> None:
    stand = Stand(
        acl(O.CREATE, name="a"), acl(O.CREATE, name="b"), acl(O.DESCRIBE_CONFIGS, name="b")
    )
    names = ("a", "b", "c", "twice", "twice", "__cluster_metadata")
    body = topics.CreateTopicsRequest(
        topics=tuple(topics.CreatableTopic(name=name) for name in names)
    )
    made = tuple(
        topics.CreatableTopicResult(name=name, num_partitions=1, replication_factor=1)
        for name in ("a", "b")
    )
    answer: Any = stand.control(body, topics.CreateTopicsResponse(topics=made))
    assert isinstance(stand.given, topics.CreateTopicsRequest)
    assert [topic.name for topic in stand.given.topics] == [
        each for each in names if each != "c"
    ], "who serves it refuses what nobody may have"
    assert told(answer) == [("a", NONE), ("b", NONE), ("c", TOPIC_ERROR)]
    assert answer.topics[2].error_message == "Authorization failed."
    shown = [(each.num_partitions, each.topic_config_error_code) for each in answer.topics]
    assert shown == [(-1, TOPIC_ERROR), (1, 0), (-1, 0)]
    assert told(Stand(on_cluster(O.CREATE)).control(body, topics.CreateTopicsResponse())) == []


def deletion(**named: Any) -> topics.DeleteTopicState:
    return topics.DeleteTopicState(**named)


def test_deleting_hides_names_that_may_not_be_seen() -> None:
    stand = Stand(acl(O.DESCRIBE), acl(O.DESCRIBE, name="missing"))
    denied = (deletion(name=SEEN), deletion(topic_id=SEEN_ID))
    hidden = (deletion(name=HIDDEN), deletion(topic_id=HIDDEN_ID), deletion(name="unknown"))
    left = (
        deletion(name="missing"),
        deletion(topic_id=UNKNOWN_ID),
        deletion(name="x", topic_id=UNKNOWN_ID),
        deletion(),
    )
    body = topics.DeleteTopicsRequest(topics=(*denied, *left, *hidden))
    answer: Any = stand.control(body, topics.DeleteTopicsResponse())
    assert stand.given == topics.DeleteTopicsRequest(topics=left)
    assert {each.error_code for each in answer.responses} == {TOPIC_ERROR}
    assert [(each.name, each.topic_id.int) for each in answer.responses] == [
        (SEEN, 0),
        (SEEN, SEEN_ID.int),
        (HIDDEN, 0),
        (None, HIDDEN_ID.int),
        ("unknown", 0),
    ]


@pytest.mark.parametrize("acls", [(on_cluster(O.DELETE),), (acl(O.DELETE, name="*"),)])
def test_topics_are_deleted_by_who_may(acls: tuple[Any, ...]) -> None:
    stand = Stand(*acls)
    body = topics.DeleteTopicsRequest(topics=(deletion(name=SEEN), deletion(topic_id=HIDDEN_ID)))
    stand.control(body, topics.DeleteTopicsResponse())
    assert stand.given is body


def test_only_topics_that_may_be_altered_grow() -> None:
    stand = Stand(acl(O.ALTER))
    both = tuple(topics.CreatePartitionsTopic(name=name, count=2) for name in BOTH)
    done = topics.CreatePartitionsTopicResult(name=SEEN)
    answer: Any = stand.control(
        topics.CreatePartitionsRequest(topics=both),
        topics.CreatePartitionsResponse(results=(done,)),
    )
    assert stand.given == topics.CreatePartitionsRequest(topics=both[:1])
    assert [(each.name, each.error_code) for each in answer.results] == [
        (SEEN, NONE),
        (HIDDEN, TOPIC_ERROR),
    ]


# --- configs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "allowing", "error"),
    [
        (2, SEEN, acl(O.ALTER_CONFIGS), TOPIC_ERROR),
        (4, "1", on_cluster(O.ALTER_CONFIGS), CLUSTER_ERROR),
        (8, "1", on_cluster(O.CLUSTER_ACTION), CLUSTER_ERROR),
        (16, "m", on_cluster(O.ALTER_CONFIGS), CLUSTER_ERROR),
        (32, SEEN, on_group(O.ALTER_CONFIGS), ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_configs_are_altered_resource_by_resource(
    kind: int, name: str, allowing: Any, error: ErrorCode
) -> None:
    own = configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=())
    odd = configs.AlterConfigsResource(resource_type=77, resource_name="?", configs=())
    body = configs.IncrementalAlterConfigsRequest(resources=(own, odd))
    done = configs.IncrementalAlterConfigsResponse(responses=())
    stand = Stand(acl(O.ALTER), on_cluster(O.ALTER))
    answer: Any = stand.control(body, done)
    assert stand.given == configs.IncrementalAlterConfigsRequest(resources=(odd,))
    assert [(each.resource_type, each.error_code) for each in answer.responses] == [(kind, error)]
    assert Stand(allowing).control(body, done) is done


def test_configs_of_one_of_two_topics_are_described() -> None:
    stand = Stand(acl(O.ALTER_CONFIGS))  # which implies it
    both = tuple(
        configs.DescribeConfigsResource(resource_type=2, resource_name=name) for name in BOTH
    )
    answer: Any = stand.ask(
        configs.DescribeConfigsRequest(resources=both), configs.DescribeConfigsResponse()
    )
    assert stand.given == configs.DescribeConfigsRequest(resources=both[:1])
    (refused,) = answer.results
    assert (refused.resource_name, refused.error_code) == (HIDDEN, TOPIC_ERROR)
    assert refused.error_message == "Topic authorization failed."
