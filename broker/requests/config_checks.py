"""Changes of this broker's own security are tried before they are passed on.

What names a store that cannot be loaded, or a certificate that may not take the place of the one of
before, is refused by the broker that is asked, and changes nothing. So is what another broker would
have to try: who changes that one's configs asks it. Whoever may not change configs at all hears
that from the door first. A request that names other resources beside is refused as a whole: Kafka's
AdminClient asks each broker for itself.

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
from wire.errors import ErrorCode
from wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

__all__ = ["ConfigChecks"]

_SET, _DELETE = 0, 1  # of an incremental change; lists are appended to and subtracted from
_Alter = AlterConfigsRequest | IncrementalAlterConfigsRequest


class ConfigChecks:
    def __init__(
        self, *, cluster: Cluster, outbox: Outbox, forward: Callable[[Request, int], None]
    ) -> None:
        self._cluster = cluster
        self._outbox = outbox
        self._forward = forward

    def handle(self, request: Request, now_ms: int) -> None:
        assert isinstance(request.body, _Alter), request.body
        problem = self._of_another(request.body)
        if problem is not None:
            self._refuse(request, problem)
            return
        values = self._changed(request.body)
        if values is None:
            self._forward(request, now_ms)
        else:
            token = self._outbox.expect(partial(self._checked, request))
            self._outbox.emit(CheckConfigs(token=token, values=values))

    def _of_another(self, body: _Alter) -> str | None:
        own = self._cluster.config.node_id
        for item in body.resources:
            name = item.resource_name
            if item.resource_type != ResourceType.BROKER or name in (CLUSTER_DEFAULT, str(own)):
                continue
            if not name.isdecimal():
                return f"Node id must be an integer, but it is: {name}"
            return f"Unexpected broker id, expected {own}, but received {name}"
        return None

    def _changed(self, body: _Alter) -> Mapping[str, str] | None:
        """This broker's dynamic configs as they would be; None if its security stays."""
        own_name = str(self._cluster.config.node_id)
        image = self._cluster.image
        values = dict(image.configs.get((ResourceType.BROKER, own_name), {}))
        is_changed = False
        for item in body.resources:
            if (item.resource_type, item.resource_name) != (ResourceType.BROKER, own_name):
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

    def _checked(self, request: Request, event: Event, now_ms: int) -> None:
        problem = event.problem if isinstance(event, ConfigsChecked) else None
        if problem is None:
            self._forward(request, now_ms)
        else:
            self._refuse(request, problem)

    def _refuse(self, request: Request, problem: str) -> None:
        self._outbox.emit(Reply(token=request.token, body=_refused(request.body, problem)))


def _refused(body: object, problem: str) -> object:
    assert isinstance(body, _Alter), body
    results = tuple(
        AlterConfigsResourceResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=problem,
            resource_type=item.resource_type,
            resource_name=item.resource_name,
        )
        for item in body.resources
    )
    if isinstance(body, AlterConfigsRequest):
        return AlterConfigsResponse(responses=results)
    return IncrementalAlterConfigsResponse(responses=results)
