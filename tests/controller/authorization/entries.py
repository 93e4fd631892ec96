"""ACLs, images and doors in a line each. For tests only."""

from collections.abc import Iterable
from uuid import UUID

from controller.authorization.acl_index import Resource
from controller.authorization.authorizer import Authorizer, Subject, UserRules
from controller.authorization.door import AclDoor, DoorRules
from controller.authorization.identities import Identities
from controller.metadata.image import MetadataImage
from controller.metadata.security import Operation, Pattern
from quorum.core.effects import Reply, Request
from tests.controller.clusters import OTHER_TOPIC, TOPIC, cluster, partition, with_topic
from wire.metadata_records import AccessControlEntryRecord
from wire.security.principals import Principal

ALICE = Principal("User", "alice")
ADMIN = Principal("User", "admin")
HOST = "10.0.0.1"
DENY, ALLOW = 2, 3
SEEN, HIDDEN = "seen", "hidden"
IMAGE = with_topic(
    with_topic(cluster(1, 2, 3), partition(), name=SEEN), name=HIDDEN, topic_id=OTHER_TOPIC
)
SEEN_ID, HIDDEN_ID, UNKNOWN_ID = TOPIC, OTHER_TOPIC, UUID(int=99)


def acl(
    operation: Operation,
    kind: Resource = Resource.TOPIC,
    name: str = SEEN,
    *,
    principal: str = "User:alice",
    host: str = "*",
    permission: int = ALLOW,
    pattern: Pattern = Pattern.LITERAL,
) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=UUID(int=0),
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def on_cluster(operation: Operation) -> AccessControlEntryRecord:
    return acl(operation, Resource.CLUSTER, "kafka-cluster")


def on_group(operation: Operation, name: str = SEEN) -> AccessControlEntryRecord:
    return acl(operation, Resource.GROUP, name)


def with_acls(acls: Iterable[AccessControlEntryRecord]) -> MetadataImage:
    return IMAGE._replace(acls={UUID(int=number): each for number, each in enumerate(acls)})


def subject(
    *acls: AccessControlEntryRecord,
    principal: Principal = ALICE,
    host: str = HOST,
    rules: UserRules = UserRules(super_users=frozenset({"User:admin"})),  # noqa: B008
) -> Subject:
    authorizer = Authorizer(rules)
    authorizer.index.follow({UUID(int=number): each for number, each in enumerate(acls)})
    return authorizer.subject(principal, host)


class Stand:
    """A door, and a core behind it that gives each request the answer that the test has for it."""

    def __init__(self, *acls: AccessControlEntryRecord, auto_creates: bool = False) -> None:
        users = UserRules(super_users=frozenset({"User:admin"}))
        self.image: MetadataImage | None = with_acls(acls)
        self.door = AclDoor(
            DoorRules(
                users=users,
                identities=Identities({}),
                early_listeners=frozenset({"CONTROLLER"}),
                auto_creates=auto_creates,
            ),
            lambda: self.image,
        )
        self.given: object = None  # what came through to the core

    def ask(
        self,
        body: object,
        answer: object = None,
        *,
        is_control: bool = False,
        meanwhile: MetadataImage | None = None,
    ) -> object:
        """What alice gets; `answer` is the core's, which comes when the image is `meanwhile`."""
        self.given = None
        request = Request(token=1, body=body, listener="L", principal=ALICE, client_host=HOST)
        admitted = self.door.admit(request, is_control=is_control)
        if isinstance(admitted, Request):
            self.given = admitted.body
            self.image = meanwhile or self.image
            left = self.door.amend(Reply(token=1, body=answer))
            assert isinstance(left, Reply)
            admitted = left
        assert isinstance(admitted, Reply)
        assert not self.door.is_amending
        return admitted.body

    def control(self, body: object, answer: object = None) -> object:
        return self.ask(body, answer, is_control=True)
