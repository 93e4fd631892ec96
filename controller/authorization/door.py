"""The door of a node: requests from sockets pass it before any core sees them.

A request goes on, goes on with less, or is answered here. What it may is decided when it comes;
its answer, if it is to be amended, is amended by the rights of the moment in which it leaves.

Before the ACLs are known only super users are served, on the listeners that start early
(`early.start.listeners`; the controllers', unless it says otherwise). Everybody else waits, as with
Kafka, whose other listeners begin to read then. ApiVersions is for everybody. Where ACLs may be
lacking, because a later release has written them, nobody but super users may do anything.

What a broker passes on is for the controller to judge, as the client's. An envelope, in which
brokers pass things on, wants CLUSTER_ACTION of the broker: nobody becomes another by writing so.

Source: Kafka's KafkaApis, ControllerApis, EnvelopeUtils, StandardAuthorizer; KIP-590, KIP-801.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller.authorization.access import (
    CLUSTER_DENIED,
    Access,
    Amend,
    Asked,
    Refused,
    Verdict,
    refused,
)
from controller.authorization.acl_index import NOTHING_ALLOWED, Resource
from controller.authorization.authorizer import Authorizer, UserRules
from controller.authorization.identities import Identities
from controller.authorization.rules import RULES
from controller.metadata.image import MetadataImage
from controller.metadata.security import Operation
from quorum.core.effects import HangUp, Reply, Request
from wire.api_table import api_of
from wire.message import replace
from wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from wire.messages.features import ApiVersionsRequest
from wire.messages.registration import EnvelopeResponse
from wire.security.principals import Forwarder, Principal

__all__ = ["AclDoor", "Audit", "DoorRules"]

_ACCESSES_MAX = 1000  # of principals and hosts
_FORWARDED = frozenset(kind for kind in RULES if api_of(kind).forwardable)
_TRIED_HERE = frozenset((AlterConfigsRequest, IncrementalAlterConfigsRequest))
_ENVELOPE_DENIED = EnvelopeResponse(error_code=CLUSTER_DENIED.error_code)


class Audit(Protocol):
    """Is told of what was decided, request by request."""

    @property
    def wants_allowed(self) -> bool:
        """Also what was allowed?"""
        ...

    def tell(
        self, request: Request, *, denied: Sequence[Asked], allowed: Sequence[Asked] = ()
    ) -> None: ...

    def tell_that_acls_lack(self, why: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorRules:
    """What server.properties say."""

    users: UserRules | None = None  # None: there is no authorizer, and everybody may do everything
    identities: Identities = field(default_factory=lambda: Identities({}))
    early_listeners: frozenset[str] = frozenset()
    auto_creates: bool = False  # auto.create.topics.enable
    audit: Audit | None = None


class AclDoor:
    """`image` is the metadata by which requests are judged; None while it is not known."""

    def __init__(self, rules: DoorRules, image: Callable[[], MetadataImage | None]) -> None:
        self._rules = rules
        self._image = image
        self._amends: dict[int, Amend] = {}  # by token
        self._are_bound = rules.identities.are_bound
        self._lacks_acls = False
        self._authorizer = Authorizer(rules.users or UserRules())
        self._index = self._authorizer.index
        self._accesses: dict[tuple[object, ...], Access] = {}

    # --- quorum.core.door ---------------------------------------------------------------------

    @property
    def can_judge(self) -> bool:
        return self._image() is not None

    @property
    def is_amending(self) -> bool:
        return bool(self._amends)

    def admit(self, request: Request, *, is_control: bool) -> Request | Reply | None:
        """What goes on, or the answer; None: it came too early.

        `is_control`: it is for the controller, or for the engine.
        """
        body = request.body
        kind = type(body)
        if kind in _FORWARDED and not is_control:
            return self._to_be_tried(request) if kind in _TRIED_HERE else request
        if self._are_bound and not self._rules.identities.are_own(request.principal, body):
            return Reply(token=request.token, body=refused(body, CLUSTER_DENIED).answer)
        if self._rules.users is None or kind is ApiVersionsRequest:
            return request
        image = self._image()
        if image is None:
            return request if self._is_served_early(request) else None
        self._follow(image)
        if request.forwarder is not None and not self._may_forward(request.forwarder):
            return Reply(token=request.token, body=_ENVELOPE_DENIED)
        access = self._access(request, image, is_control=is_control)
        if access.allowed is None and access.subject.is_super:
            return request
        verdict = RULES[kind](access, body)
        if access.denied or access.allowed:
            self._tell(request, access, verdict)
        return request if access.subject.is_super else self._decided(request, verdict)

    def amend(self, leaving: Reply | HangUp) -> Reply | HangUp:
        amend = self._amends.pop(leaving.token, None)
        if amend is None or isinstance(leaving, HangUp) or leaving.body is None:
            return leaving
        image = self._image()
        if image is not None:
            self._follow(image)
        return Reply(token=leaving.token, body=amend(leaving.body))

    def _follow(self, image: MetadataImage) -> None:
        if image.lacks_acls and not self._lacks_acls and self._rules.audit is not None:
            self._rules.audit.tell_that_acls_lack(image.lacks)
        self._lacks_acls = image.lacks_acls
        self._index.follow(NOTHING_ALLOWED if image.lacks_acls else image.acls)

    # --- decisions ----------------------------------------------------------------------------

    def _decided(self, request: Request, verdict: Verdict) -> Request | Reply:
        if verdict is None:
            return request
        if isinstance(verdict, Refused):
            return Reply(token=request.token, body=verdict.answer)
        self._amends[request.token] = verdict.amend
        return request if verdict.body is request.body else replace(request, body=verdict.body)

    def _access(self, request: Request, image: MetadataImage, *, is_control: bool) -> Access:
        """It is kept for the next request of the same principal, with what was decided about it."""
        key = request.principal, request.client_host, is_control, request.lacking
        access = self._accesses.get(key)
        if access is None:
            if len(self._accesses) >= _ACCESSES_MAX:
                self._accesses.clear()
            subject = self._authorizer.subject(request.principal, request.client_host)
            audit = self._rules.audit
            access = self._accesses[key] = Access(
                subject,
                image,
                is_control,
                request.lacking,
                self._rules.auto_creates,
                allowed=[] if audit is not None and audit.wants_allowed else None,
            )
        access.image = image
        return access

    def _tell(self, request: Request, access: Access, verdict: Verdict) -> None:
        """What was denied counts only if something is refused for it."""
        audit, denied, allowed = self._rules.audit, access.denied, access.allowed
        access.denied = []
        if allowed is not None:
            access.allowed = []
        if audit is not None:
            audit.tell(request, denied=denied if verdict is not None else (), allowed=allowed or ())

    def _to_be_tried(self, request: Request) -> Request | Reply | None:
        """The broker tries what its client may change, before it passes the whole frame on for the
        controller to judge: what files there are is told to nobody else."""
        if self._rules.users is None:
            return request
        image = self._image()
        if image is None:
            return None
        self._follow(image)
        access = self._access(request, image, is_control=False)
        if access.subject.is_super:
            return request
        verdict = RULES[type(request.body)](access, request.body)
        if verdict is None:
            return request
        if isinstance(verdict, Refused):
            self._tell(request, access, verdict)
            return Reply(token=request.token, body=verdict.answer)
        return replace(request, body=verdict.body)

    def _may_forward(self, forwarder: Forwarder) -> bool:
        broker = self._authorizer.subject(forwarder.principal, forwarder.host)
        return broker.may(Operation.CLUSTER_ACTION, Resource.CLUSTER)

    def _is_served_early(self, request: Request) -> bool:
        """The authorizer has no ACLs yet, but knows the super users."""
        forwarder = request.forwarder
        return (
            request.listener in self._rules.early_listeners
            and self._is_super(request.principal)
            and (forwarder is None or self._is_super(forwarder.principal))
        )

    def _is_super(self, principal: Principal) -> bool:
        return self._authorizer.subject(principal, "").is_super
