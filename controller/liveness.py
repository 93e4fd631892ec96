"""Which brokers have sent a heartbeat lately. Soft state of the active controller only.

A new active controller gives every broker a fresh session, since it cannot know which were silent.

Source: KIP-631; Kafka's BrokerHeartbeatManager.
"""

from dataclasses import dataclass

from controller.metadata.image import MetadataImage
from wire.primitives import INT64_MAX

__all__ = ["Liveness"]

_UNKNOWN_OFFSET = -1


@dataclass(slots=True)
class _Session:
    epoch: int  # of the broker
    heard_ms: int
    metadata_offset: int = _UNKNOWN_OFFSET  # applied by the broker, inclusive
    shutdown_offset: int | None = None  # see `Liveness.shutdown_offset`


class Liveness:
    """The sessions of brokers. Owned by one `Controller`."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}

    def reset(self, image: MetadataImage, now_ms: int) -> None:
        """Begin anew, with a fresh session for every broker that the image has.

        A broker that is shutting down may have been moved from just before: others have to have
        applied all of the image before it may go.
        """
        self._sessions = {
            broker.id: _Session(
                epoch=broker.epoch,
                heard_ms=now_ms,
                shutdown_offset=image.at.offset - 1 if broker.in_controlled_shutdown else None,
            )
            for broker in image.brokers.values()
        }

    def clear(self) -> None:
        self._sessions = {}

    def registered(self, broker_id: int, epoch: int, now_ms: int) -> None:
        self._session(broker_id, epoch, now_ms).heard_ms = now_ms

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def heard(self, broker_id: int, epoch: int, *, metadata_offset: int, now_ms: int) -> None:
        """A heartbeat has come, even if its answer will be an error."""
        session = self._session(broker_id, epoch, now_ms)
        session.heard_ms = max(session.heard_ms, now_ms)
        session.metadata_offset = metadata_offset

    def _session(self, broker_id: int, epoch: int, now_ms: int) -> _Session:
        """The session of this life of the broker, which may begin now."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            session = self._sessions[broker_id] = _Session(epoch=epoch, heard_ms=now_ms)
        return session

    def is_live(self, broker_id: int, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and now_ms < session.heard_ms + self._timeout_ms

    def left(self, broker_id: int, last_offset: int) -> None:
        """A batch that ends at `last_offset` has moved the leaderships of a broker in controlled
        shutdown."""
        self._sessions[broker_id].shutdown_offset = last_offset

    def shutdown_offset(self, broker_id: int) -> int:
        """The offset that active brokers have to have applied before this one may stop."""
        session = self._sessions.get(broker_id)
        known = None if session is None else session.shutdown_offset
        return INT64_MAX if known is None else known

    def lowest_active_offset(self, image: MetadataImage) -> int:
        """The offset that every active broker has applied; the largest there is without any."""
        offsets = (
            self._sessions[broker.id].metadata_offset
            if broker.id in self._sessions
            else _UNKNOWN_OFFSET
            for broker in image.brokers.values()
            if broker.is_active
        )
        return min(offsets, default=INT64_MAX)

    def expired(self, image: MetadataImage, now_ms: int) -> int | None:
        """The unfenced broker that has been silent for longest, if its session has run out."""
        silent = self._most_silent(image)
        if silent is None or now_ms < silent[0] + self._timeout_ms:
            return None
        return silent[1]

    def deadline_ms(self, image: MetadataImage) -> int | None:
        """When the next session runs out."""
        silent = self._most_silent(image) if self._sessions else None
        return None if silent is None else silent[0] + self._timeout_ms

    def _most_silent(self, image: MetadataImage) -> tuple[int, int] | None:
        """The last heartbeat and the id of the unfenced broker that is silent for longest."""
        silent = None
        for broker_id, session in self._sessions.items():
            broker = image.brokers.get(broker_id)
            if broker is None or broker.fenced:
                continue
            if silent is None or (session.heard_ms, broker_id) < silent:
                silent = session.heard_ms, broker_id
        return silent
