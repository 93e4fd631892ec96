"""The input of an authorization rule, and the decisions that it can make.

A rule is `access, body -> verdict`: None lets the request go on as it is, `Narrowed` lets go on
what is left of it, and `Refused` answers it at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress
from operator import not_
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from controller.authorization.acl_index import Resource
from controller.authorization.authorizer import CLUSTER, Subject
from controller.metadata.configs import Refusal
from controller.metadata.image import MetadataImage
from controller.metadata.security import Operation
from controller.refusals import refuse
from wire.capabilities import NOTHING_LACKING, Lacking
from wire.errors import ErrorCode
from wire.message import replace
from wire.primitives import METADATA_TOPIC, METADATA_TOPIC_ID

__all__ = [
    "CLUSTER_DENIED",
    "GROUP_DENIED",
    "TOPIC_DENIED",
    "TRANSACTIONAL_ID_DENIED",
    "Access",
    "Amend",
    "Asked",
    "Narrowed",
    "Refused",
    "Rule",
    "Verdict",
    "by_topic",
    "goes_on",
    "narrowed",
    "refused",
]

CLUSTER_DENIED = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
GROUP_DENIED = Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed.")
TOPIC_DENIED = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
TRANSACTIONAL_ID_DENIED = Refusal(
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional Id authorization failed."
)
_T = TypeVar("_T")


class Asked(NamedTuple):
    """What was looked up for a request, to be told to an audit."""

    operation: Operation
    kind: Resource
    name: str


@dataclass(slots=True, eq=False)  # one for each request: frozen, it would cost four times as much
class Access:
    """Who asks, where, and what is known there."""

    subject: Subject
    image: MetadataImage
    is_control: bool  # asked of a controller, or by a broker for its client
    lacking: Lacking = NOTHING_LACKING
    auto_creates: bool = False  # auto.create.topics.enable
    denied: list[Asked] = field(default_factory=list)  # why it is refused, as far as it is
    allowed: list[Asked] | None = None  # None: nobody wants to know

    def may(self, operation: Operation, kind: Resource, name: str) -> bool:
        allowed = self.subject.may(operation, kind, name)
        if not allowed:
            self.denied.append(Asked(operation, kind, name))
        elif self.allowed is not None:
            self.allowed.append(Asked(operation, kind, name))
        return allowed

    def may_cluster(self, operation: Operation) -> bool:
        return self.may(operation, Resource.CLUSTER, CLUSTER)

    def may_any(self, operation: Operation) -> bool:
        """As `may_cluster`, where there is more to ask if not: that it may not refuses nothing."""
        return self.subject.may(operation, Resource.CLUSTER)

    def name_of(self, topic: Any) -> str | None:
        """As `topic_name`, of what has a `name` and a `topic_id`."""
        if not topic.topic_id.int:
            return topic.name or ""
        return self.topic_name(None, topic.topic_id)

    def topic_name(self, name: str | None, topic_id: UUID) -> str | None:
        """The name of a topic that may be given by its id; None if the id is not known."""
        if not topic_id.int:
            return name or ""
        if topic_id == METADATA_TOPIC_ID:
            return METADATA_TOPIC
        topic = self.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def split(
        self,
        operation: Operation,
        kind: Resource,
        items: tuple[_T, ...],
        name_of: Callable[[_T], str | None],
    ) -> tuple[tuple[_T, ...], tuple[_T, ...]]:
        """Those whose resource allows it, and those whose does not. What is not known (None) goes
        with the first: there is nothing to hide."""
        if self.allowed is None:
            decided = self.subject.decided(operation, kind)
            for item in items:
                name = name_of(item)
                if name is None or not decided.get(name):
                    break
            else:
                return items, ()
        names = [name_of(item) for item in items]
        may = [name is None or self.may(operation, kind, name) for name in names]
        if all(may):
            return items, ()
        return tuple(compress(items, may)), tuple(compress(items, map(not_, may)))


Amend = Callable[[Any], Any]  # what is answered -> what the client gets


class Narrowed(NamedTuple):
    """Go on with this body. The answer, if there is one, is amended before it leaves."""

    body: Any
    amend: Amend


class Refused(NamedTuple):
    """The answer; None: there is none (Produce without acknowledgements)."""

    answer: Any


Verdict = Narrowed | Refused | None
Rule = Callable[[Access, Any], Verdict]


def narrowed(
    body: Any,
    asked: str,
    allowed: tuple[Any, ...],
    response: Callable[..., Any],
    answered: str,
    denials: tuple[Any, ...],
) -> Verdict:
    """Go on with what is `allowed` of the request's field `asked`, and add `denials` to the field
    `answered` of the response; if nothing is allowed, they are the answer."""
    if not denials:
        return None
    if not allowed:
        return Refused(response(**{answered: denials}))

    def amend(answer: Any) -> Any:
        return replace(answer, **{answered: (*getattr(answer, answered), *denials)})

    return Narrowed(replace(body, **{asked: allowed}), amend)


def by_topic(
    operation: Operation,
    response: Callable[..., Any],
    denial_of: Callable[[Any], Any],
    *,
    nodes_may: bool = False,
    name_of: Callable[[Any], str] = lambda topic: topic.name,
) -> Rule:
    """`operation` on each of the request's topics; `denial_of` answers for one that is refused."""

    def rule(access: Access, body: Any) -> Verdict:
        if nodes_may and access.may_any(Operation.CLUSTER_ACTION):
            return None
        allowed, denied = access.split(operation, Resource.TOPIC, body.topics, name_of)
        return narrowed(body, "topics", allowed, response, "topics", tuple(map(denial_of, denied)))

    return rule


def goes_on(_access: Access, _body: object) -> None:
    """Everybody may ask."""


def refused(body: object, denial: Refusal) -> Refused:
    return Refused(refuse(body, denial.error_code, denial.message))
