"""What the log says of those who were refused, and of those who were not."""

import logging

import pytest

from controller.authorization.acl_index import Resource
from controller.authorization.authorizer import UserRules
from controller.authorization.door import AclDoor, DoorRules
from controller.metadata.security import Operation
from quorum.core.effects import Request
from quorumlab.security.audit import LoggedAudit
from tests.controller.authorization.entries import ADMIN, HIDDEN, HOST, SEEN, acl, with_acls
from wire.messages.features import ApiVersionsRequest
from wire.messages.groups import DescribeGroupsRequest, ListGroupsRequest
from wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from wire.messages.producing import InitProducerIdRequest
from wire.security.principals import Principal

LOGGER = "kafka.authorizer.logger"


def told(
    caplog: pytest.LogCaptureFixture,
    body: object,
    principal: Principal = Principal("User", "alice"),  # noqa: B008
    level: int = logging.INFO,
) -> list[tuple[int, str]]:
    caplog.set_level(level, LOGGER)
    rules = UserRules(super_users=frozenset({str(ADMIN)}))
    image = with_acls([acl(Operation.READ), acl(Operation.READ, Resource.GROUP)])
    door = AclDoor(DoorRules(users=rules, audit=LoggedAudit()), lambda: image)
    request = Request(token=1, body=body, listener="L", principal=principal, client_host=HOST)
    door.admit(request, is_control=False)
    return [(each.levelno, each.getMessage()) for each in caplog.records]


def test_it_is_told_once_that_acls_may_be_lacking(caplog: pytest.LogCaptureFixture) -> None:
    image = with_acls([])._replace(lacks="at offset 7, something", lacks_acls=True)
    door = AclDoor(DoorRules(users=UserRules(), audit=LoggedAudit()), lambda: image)
    for token in (1, 2):
        door.admit(Request(token=token, body=ListGroupsRequest()), is_control=True)
    (line,) = (each.getMessage() for each in caplog.records if each.levelno == logging.WARNING)
    assert line.startswith("nobody but super users may do anything: ACLs may be lacking")
    assert "at offset 7, something" in line


def seen_and_hidden(*others: str) -> MetadataRequest:
    names = (SEEN, HIDDEN, *others)
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))


def test_what_is_refused_is_told_as_kafka_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    assert told(caplog, seen_and_hidden()) == [
        (
            logging.INFO,
            f"Principal = User:alice is Denied operation = DESCRIBE from host = {HOST} "
            f"on resource = Topic:LITERAL:{HIDDEN} for request = Metadata",
        )
    ]


@pytest.mark.parametrize(
    "body",
    [
        ApiVersionsRequest(),
        MetadataRequest(topics=None),
        ListGroupsRequest(),
        DescribeGroupsRequest(groups=(SEEN,)),
    ],
)
def test_nothing_is_told_where_nothing_is_refused(
    body: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert told(caplog, body) == []


def test_many_names_and_names_with_lines_make_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    lines = [text for _, text in told(caplog, seen_and_hidden(*(f"x\n{n}" for n in range(20))))]
    assert len(lines) == 11
    assert lines[-1] == "... and 11 more of the same request"
    assert not any("\n" in line for line in lines)


def test_a_missing_right_of_the_cluster_is_told(caplog: pytest.LogCaptureFixture) -> None:
    body = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1, producer_id=-1, producer_epoch=-1
    )
    ((_, line),) = told(caplog, body)
    assert "IDEMPOTENT_WRITE" in line
    assert "Cluster:LITERAL:kafka-cluster" in line


@pytest.mark.parametrize(("who", "count"), [(Principal("User", "alice"), 1), (ADMIN, 2)])
def test_what_is_allowed_is_told_to_who_debugs(
    who: Principal, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    lines = told(caplog, seen_and_hidden(), who, logging.DEBUG)
    allowed = [text for level, text in lines if level == logging.DEBUG]
    assert len(allowed) == count
    assert f"{who} is Allowed operation = DESCRIBE" in allowed[0]
