"""How a controller registers itself with the active one (KIP-919).

Every controller sees to it that the log holds a registration of its present process. It asks the
active controller, and asks again, ever more slowly, until the log shows the registration.
"""

from controller.config import ControllerConfig
from controller.metadata.image import MetadataImage
from controller.metadata.metadata_version import CONTROLLER_REGISTRATION
from quorum.core.effects import Send, Token
from quorum.core.types import Endpoint
from wire.messages.registration import ControllerRegistrationRequest
from wire.primitives import ZERO_UUID

__all__ = ["Registration"]

_CHANNEL = "controller-registration"


class Registration:
    """Owned by one `Controller`. The token's number is the owner's."""

    def __init__(self, config: ControllerConfig, now_ms: int) -> None:
        self._config = config
        self._due_ms = now_ms
        self._backoff_ms = config.registration_backoff_ms
        self._in_flight: int | None = None  # the number of the token
        self._judged: tuple[object, object] = None, None  # the mappings that `is_needed` looked at
        self._is_needed = False

    def is_needed(self, committed: MetadataImage) -> bool:
        controllers, features = self._judged
        if committed.controllers is not controllers or committed.features is not features:
            self._judged = committed.controllers, committed.features
            self._is_needed = self._judge(committed)
        return self._is_needed

    def _judge(self, committed: MetadataImage) -> bool:
        config = self._config
        if config.incarnation_id == ZERO_UUID:
            return False
        if committed.metadata_version < CONTROLLER_REGISTRATION:
            return False
        known = committed.controllers.get(config.node_id)
        return known is None or known.incarnation_id != config.incarnation_id

    def is_due(self, committed: MetadataImage, now_ms: int) -> bool:
        return self._in_flight is None and now_ms >= self._due_ms and self.is_needed(committed)

    def deadline_ms(self, committed: MetadataImage) -> int | None:
        return self._due_ms if self._in_flight is None and self.is_needed(committed) else None

    def request(self) -> ControllerRegistrationRequest:
        config = self._config
        return ControllerRegistrationRequest(
            controller_id=config.node_id,
            incarnation_id=config.incarnation_id,
            zk_migration_ready=False,
            listeners=config.listeners,
            features=config.features,
        )

    def send(self, token: Token, to: Endpoint) -> Send:
        self._in_flight = token.number
        return Send(
            token=token,
            to=to,
            channel=_CHANNEL,
            body=self.request(),
            timeout_ms=self._config.registration_timeout_ms,
        )

    def answered(self, token: Token, now_ms: int) -> None:
        """Whatever the answer: the log says whether it was of use."""
        if token.number == self._in_flight:
            self._in_flight = None
            self.tried(now_ms)

    def tried(self, now_ms: int) -> None:
        self._due_ms = now_ms + self._backoff_ms
        self._backoff_ms = min(self._backoff_ms * 2, self._config.registration_backoff_max_ms)

    def leader_changed(self, now_ms: int) -> None:
        """Somebody else decides now: try at once."""
        self._due_ms = now_ms
        self._backoff_ms = self._config.registration_backoff_ms
