"""Who passes the door, when, and under which name."""

from dataclasses import replace
from typing import Any

import pytest

from controller.authorization.acl_index import Resource
from controller.authorization.authorizer import UserRules
from controller.authorization.door import AclDoor, DoorRules
from controller.authorization.identities import Identities
from controller.metadata.image import MetadataImage, ResourceType
from controller.metadata.security import Operation
from quorum.core.effects import HangUp, Reply, Request
from tests.controller.authorization.entries import (
    ADMIN,
    ALICE,
    HIDDEN,
    HOST,
    SEEN,
    acl,
    on_cluster,
    with_acls,
)
from tests.controller.clusters import heartbeat
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from wire.messages.features import ApiVersionsRequest
from wire.messages.groups import ListGroupsRequest, ListGroupsResponse
from wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from wire.messages.registration import EnvelopeResponse
from wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from wire.security.principals import Forwarder, Principal

BROKER = Principal("User", "broker")
USERS = UserRules(super_users=frozenset({str(ADMIN)}))
NEW = CreateTopicsRequest(topics=(CreatableTopic(name="new"),))


def asked(
    body: object,
    principal: Principal = ALICE,
    *,
    token: int = 1,
    listener: str = "PLAINTEXT",
    forwarder: Principal | None = None,
) -> Request:
    return Request(
        token=token,
        body=body,
        principal=principal,
        client_host=HOST,
        listener=listener,
        forwarder=None if forwarder is None else Forwarder(forwarder, "10.0.0.7"),
    )


class Door:
    def __init__(self, *acls: Any, is_known: bool = True, **rules: Any) -> None:
        self.image: MetadataImage | None = with_acls(acls) if is_known else None
        given = {"users": USERS, "early_listeners": frozenset({"CONTROLLER"}), **rules}
        self.door = AclDoor(DoorRules(**given), lambda: self.image)

    def admit(self, request: Request, *, is_control: bool = True) -> Request | Reply | None:
        return self.door.admit(request, is_control=is_control)


def error(outcome: object) -> ErrorCode:
    assert isinstance(outcome, Reply)
    assert outcome.body is not None
    code: ErrorCode = outcome.body.error_code  # type: ignore[attr-defined]
    return code


# --- names ------------------------------------------------------------------------------------


def test_forwarded_request_is_judged_as_its_clients() -> None:
    door = Door(on_cluster(Operation.CLUSTER_ACTION), acl(Operation.ALL, name="*"))
    (topic,) = refusal_of(door.admit(asked(NEW, BROKER, forwarder=ADMIN)))
    assert topic.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    admitted = door.admit(asked(NEW, ALICE, forwarder=ADMIN))
    assert isinstance(admitted, Request)


def refusal_of(outcome: object) -> Any:
    assert isinstance(outcome, Reply)
    assert isinstance(outcome.body, CreateTopicsResponse)
    return outcome.body.topics


def test_envelope_wants_cluster_action_of_the_broker_whoever_is_named_in_it() -> None:
    request = asked(NEW, ADMIN, forwarder=BROKER)
    refused = Door().admit(request)
    assert isinstance(refused, Reply)
    assert refused.body == EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    may = acl(Operation.CLUSTER_ACTION, Resource.CLUSTER, "kafka-cluster", principal=str(BROKER))
    assert Door(may).admit(request) is request
    elsewhere = acl(
        Operation.CLUSTER_ACTION,
        Resource.CLUSTER,
        "kafka-cluster",
        principal=str(BROKER),
        host=HOST,
    )
    assert isinstance(Door(elsewhere).admit(request), Reply), "the host is the broker's own"


@pytest.mark.parametrize("principal", [ADMIN, ALICE])
def test_node_is_spoken_for_by_its_own_principal_even_where_there_are_no_acls(
    principal: Principal,
) -> None:
    bound = Identities({1: frozenset({BROKER})})
    for users in (None, USERS):
        door = Door(on_cluster(Operation.CLUSTER_ACTION), users=users, identities=bound)
        refused = door.admit(asked(heartbeat(1, 0, 0), principal))
        assert error(refused) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        other = asked(heartbeat(2, 0, 0), principal)
        assert door.admit(other) is other
    own = asked(heartbeat(1, 0, 0), BROKER)
    assert Door(users=None, identities=bound).admit(own) is own


# --- early ------------------------------------------------------------------------------------


def test_before_the_acls_are_known_super_users_are_served_where_it_is_early() -> None:
    door = Door(on_cluster(Operation.CLUSTER_ACTION), is_known=False)
    body = heartbeat(1, 0, 0)
    super_user = asked(body, ADMIN, listener="CONTROLLER")
    assert door.admit(super_user) is super_user
    versions = asked(ApiVersionsRequest())
    assert door.admit(versions) is versions
    waiting = [
        asked(body, ADMIN, token=2),
        asked(body, ALICE, token=3, listener="CONTROLLER"),
        asked(NEW, ADMIN, token=4, listener="CONTROLLER", forwarder=BROKER),
    ]
    assert [door.admit(each) for each in waiting] == [None] * 3
    assert not door.door.can_judge
    door.image = with_acls([on_cluster(Operation.CLUSTER_ACTION)])
    assert door.door.can_judge
    assert isinstance(door.admit(waiting[1]), Request)


def test_where_acls_may_be_lacking_nobody_but_super_users_may_do_anything() -> None:
    door = Door(acl(Operation.ALL, name="*"), users=replace(USERS, allows_everyone=True))
    assert isinstance(door.admit(asked(NEW)), Request)
    assert door.image is not None
    door.image = door.image._replace(lacks_acls=True)
    (topic,) = refusal_of(door.admit(asked(NEW)))
    assert topic.error_code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    super_user = asked(NEW, ADMIN)
    assert door.admit(super_user) is super_user


# --- what the broker tries itself -------------------------------------------------------------


def altering(*kinds: ResourceType) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=kind,
                resource_name=SEEN if kind is ResourceType.TOPIC else "1",
                configs=(),
            )
            for kind in kinds
        ),
        validate_only=False,
    )


def test_broker_tries_only_what_its_client_may_change() -> None:
    topic, broker = ResourceType.TOPIC, ResourceType.BROKER
    door = Door(acl(Operation.ALTER_CONFIGS))
    admitted = door.admit(asked(altering(topic, broker)), is_control=False)
    assert isinstance(admitted, Request)
    assert admitted.body == altering(topic), "the frame is passed on whole"
    assert not door.door.is_amending, "the controller answers for all of it"
    refused = door.admit(asked(altering(broker)), is_control=False)
    assert isinstance(refused, Reply)
    assert isinstance(refused.body, IncrementalAlterConfigsResponse)
    (result,) = refused.body.responses
    assert result.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    may = Door(on_cluster(Operation.ALTER_CONFIGS))
    for each in (asked(altering(broker)), asked(altering(broker), ADMIN)):
        assert may.admit(each, is_control=False) is each


# --- answers ----------------------------------------------------------------------------------


def left(door: Door, reply: Reply) -> Any:
    leaving = door.door.amend(reply)
    assert isinstance(leaving, Reply)
    return leaving.body


def test_request_that_is_hung_up_is_forgotten() -> None:
    door = Door(acl(Operation.READ))
    assert isinstance(door.admit(asked(MetadataRequest()), is_control=False), Request)
    assert door.door.is_amending
    assert door.door.amend(HangUp(token=1)) == HangUp(token=1)
    assert not door.door.is_amending


def test_answer_is_amended_once_and_by_the_rights_of_its_asker_when_it_leaves() -> None:
    door = Door(acl(Operation.READ, name="*"))
    everything = MetadataResponse(
        topics=tuple(MetadataResponseTopic(name=name) for name in (SEEN, HIDDEN))
    )
    for token, principal in ((1, ALICE), (2, ADMIN)):
        assert isinstance(
            door.admit(asked(MetadataRequest(), principal, token=token), is_control=False), Request
        )
    door.image = with_acls([acl(Operation.READ)])
    answers = [left(door, Reply(token=token, body=everything)) for token in (2, 1, 1)]
    names = [[topic.name for topic in each.topics] for each in answers]
    assert names == [[SEEN, HIDDEN], [SEEN], [SEEN, HIDDEN]]


def test_core_that_gives_no_answer_gives_none() -> None:
    door = Door()
    assert isinstance(door.admit(asked(ListGroupsRequest()), is_control=False), Request)
    assert door.door.amend(Reply(token=1, body=None)) == Reply(token=1, body=None)


def test_new_acls_hold_from_the_next_request() -> None:
    door = Door()
    answer = ListGroupsResponse(groups=())
    assert isinstance(door.admit(asked(heartbeat(1, 0, 0))), Reply)
    door.image = with_acls([on_cluster(Operation.CLUSTER_ACTION)])
    assert isinstance(door.admit(asked(heartbeat(1, 0, 0))), Request)
    assert left(door, Reply(token=1, body=answer)) is answer
