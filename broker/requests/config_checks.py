"""Changes of configs are tried by the broker that is asked, before they are passed on.

Each resource by itself: what names a key twice, null for a value, or another broker is refused
here, and the others are passed on. So is a change of this broker's security with a store that
cannot be loaded, or with a certificate that may not take the place of the one of before; another
broker's is for that one to try. Whoever may not change configs at all hears that from the door
first: what the door has removed for the trial is passed on, for the controller to refuse.

Source: Kafka's ConfigAdminManager.preprocess, which answers INVALID_REQUEST (KAFKA-13609), and
SslFactory.validateReconfiguration.
"""

from collections.abc import Callable, Mapping
from functools import partial

from broker.cluster import Cluster
from controller.metadata.image import CLUSTER_DEFAULT, ResourceType
from controller.metadata.tls_keys import SECURITY_NAMES
from quorum.core.config_effects import CheckConfigs, ConfigsChecked
from quorum.core.effects import Event, Reply, Request
from quorum.core.outbox import Outbox
from wire.apis import decode_request
from wire.errors import ErrorCode
from wire.forwarding import reframed, unwrap_response
from wire.message import replace
from wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    LegacyResource,
)

__all__ = ["ConfigChecks", "problem"]

_SET, _DELETE = 0, 1  # of an incremental change; lists are appended to and subtracted from
_Alter = AlterConfigsRequest | IncrementalAlterConfigsRequest
_Resource = LegacyResource | AlterConfigsResource
_Key = tuple[int, str]  # type and name of a resource
_Refused = Mapping[_Key, str]  # the reason
_MESSAGE_BYTES_MAX = 1000  # of a reason; a string of the wire ends at 32,767
_Forward = Callable[[Request, int, Callable[[object], object] | None], None]


class ConfigChecks:
    def __init__(self, *, cluster: Cluster, outbox: Outbox, forward: _Forward) -> None:
        self._cluster = cluster
        self._outbox = outbox
        self._forward = forward

    def handle(self, request: Request, now_ms: int) -> None:
        assert isinstance(request.body, _Alter), request.body
        own = self._cluster.config.node_id
        found = ((_key(item), problem(item, own)) for item in request.body.resources)
        refused = {key: why for key, why in found if why is not None}
        values = self._changed(request.body, refused)
        if values is None:
            self._pass_on(request, refused, now_ms)
        else:
            token = self._outbox.expect(partial(self._checked, request, refused))
            self._outbox.emit(CheckConfigs(token=token, values=values))

    def _changed(self, body: _Alter, refused: _Refused) -> Mapping[str, str] | None:
        """This broker's dynamic configs as they would be; None if its security stays."""
        own = self._own
        image = self._cluster.image
        values = dict(image.configs.get(own, {}))
        is_changed = False
        for item in body.resources:
            if _key(item) != own or own in refused:
                continue
            if isinstance(body, AlterConfigsRequest):
                values.clear()
            for entry in item.configs:
                is_changed = is_changed or entry.name.endswith(SECURITY_NAMES)
                operation = getattr(entry, "config_operation", _SET)
                if operation == _DELETE:
                    values.pop(entry.name, None)
                elif operation == _SET and entry.value is not None:
                    values[entry.name] = entry.value
        if not is_changed:
            return None
        return {**image.configs.get((ResourceType.BROKER, CLUSTER_DEFAULT), {}), **values}

    @property
    def _own(self) -> _Key:
        return ResourceType.BROKER, str(self._cluster.config.node_id)

    def _checked(self, request: Request, refused: _Refused, event: Event, now_ms: int) -> None:
        why = event.problem if isinstance(event, ConfigsChecked) else None
        told = {} if why is None else {self._own: why}
        self._pass_on(request, {**refused, **told}, now_ms)

    def _pass_on(self, request: Request, refused: _Refused, now_ms: int) -> None:
        """The client's own bytes, unless something in them is refused here."""
        if not refused:
            self._forward(request, now_ms, None)
            return
        asked = decode_request(request.frame).body if request.frame else request.body
        assert isinstance(asked, _Alter), asked
        rest = tuple(item for item in asked.resources if _key(item) not in refused)
        told = tuple(
            AlterConfigsResourceResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=_cut(refused[_key(item)]),
                resource_type=item.resource_type,
                resource_name=item.resource_name,
            )
            for item in asked.resources
            if _key(item) in refused
        )
        if not rest:
            is_legacy = isinstance(asked, AlterConfigsRequest)
            answer = AlterConfigsResponse if is_legacy else IncrementalAlterConfigsResponse
            self._outbox.emit(Reply(token=request.token, body=answer(responses=told)))
            return
        body = replace(asked, resources=rest)
        frame = reframed(request.frame, body) if request.frame else b""
        passed_on = replace(request, body=body, frame=frame)
        keys = [_key(item) for item in asked.resources]
        order = {key: place for place, key in enumerate(keys)}
        self._forward(passed_on, now_ms, partial(_joined, told, frame, order))


def problem(item: _Resource, node_id: int) -> str | None:
    """Why this broker refuses a change of a resource, whoever may change it."""
    names = [entry.name for entry in item.configs]
    if len({*names}) < len(names):
        return "Each config key must appear at most once."
    empty = [
        entry.name
        for entry in item.configs
        if entry.value is None and getattr(entry, "config_operation", _SET) != _DELETE
    ]
    if empty:
        return f"Null value not supported for : {', '.join(empty)}"
    name = item.resource_name
    if item.resource_type != ResourceType.BROKER or name in (CLUSTER_DEFAULT, str(node_id)):
        return None
    if not name.isdecimal():
        return f"Node id must be an integer, but it is: {name}"
    return f"Unexpected broker id, expected {node_id}, but received {name}"


def _key(item: _Resource | AlterConfigsResourceResponse) -> _Key:
    return item.resource_type, item.resource_name


def _cut(text: str) -> str:
    return text.encode()[:_MESSAGE_BYTES_MAX].decode(errors="ignore")


def _joined(
    told: tuple[AlterConfigsResourceResponse, ...],
    frame: bytes,
    order: Mapping[_Key, int],
    answer: object,
) -> object:
    """The controller's answer, with what was refused here; an envelope's error as it is."""
    opened = unwrap_response(answer, frame)
    if not isinstance(opened, AlterConfigsResponse | IncrementalAlterConfigsResponse):
        return answer
    answers: tuple[AlterConfigsResourceResponse, ...] = (*told, *opened.responses)
    found = sorted(answers, key=lambda each: order.get(_key(each), len(order)))
    return replace(opened, responses=tuple(found))
