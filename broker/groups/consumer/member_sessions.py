"""How long the members of a group may be silent, or keep what they have to give back."""

from collections.abc import Mapping

from broker.groups.consumer.consumer_group import ConsumerMember
from broker.groups.consumer.consumer_values import MemberState, TopicPartition
from quorum.core.effects import earliest

__all__ = ["Sessions"]

_Owed = Mapping[TopicPartition, int] | None  # what is to be given back; None: to join, or to sync


class Sessions:
    __slots__ = ("_revoked_by_ms", "_silent_until_ms", "wake_ms")

    def __init__(self) -> None:
        self._silent_until_ms: dict[str, int] = {}
        self._revoked_by_ms: dict[str, tuple[int, _Owed]] = {}
        self.wake_ms: int | None = None  # not later than the first of all of them

    def touch(self, member: ConsumerMember, *, timeout_ms: int, now_ms: int) -> None:
        """A sign of life, or the member has just been loaded."""
        self._silent_until_ms[member.id] = now_ms + timeout_ms
        self.wake_ms = earliest(self.wake_ms, now_ms + timeout_ms)
        if member.classic is not None:
            return  # it has time to join again, and to sync
        if member.current.state is not MemberState.UNREVOKED_PARTITIONS:
            self._revoked_by_ms.pop(member.id, None)
        elif self._revoked_by_ms.get(member.id, (0, None))[1] != member.current.revoking:
            due_ms = now_ms + member.subscription.rebalance_timeout_ms
            self._revoked_by_ms[member.id] = due_ms, member.current.revoking
            self.wake_ms = earliest(self.wake_ms, due_ms)

    def expect(self, member_id: str, due_ms: int) -> None:
        """A member of the classic protocol is to join or to sync: the time has begun already, if
        it was told before."""
        if member_id not in self._revoked_by_ms:
            self._revoked_by_ms[member_id] = due_ms, None
            self.wake_ms = earliest(self.wake_ms, due_ms)

    def postpone(self, member_id: str, until_ms: int) -> None:
        """It cannot be removed now."""
        self._silent_until_ms[member_id] = until_ms
        self._revoked_by_ms.pop(member_id, None)
        self.reckon()

    def stopped_revoking(self, member_id: str) -> None:
        self._revoked_by_ms.pop(member_id, None)

    def forget(self, member_id: str) -> None:
        self._silent_until_ms.pop(member_id, None)
        self._revoked_by_ms.pop(member_id, None)

    def overdue(self, now_ms: int) -> list[str]:
        silent = [id_ for id_, due_ms in self._silent_until_ms.items() if due_ms <= now_ms]
        late = [id_ for id_, (due_ms, _) in self._revoked_by_ms.items() if due_ms <= now_ms]
        return list(dict.fromkeys((*silent, *late)))

    def reckon(self) -> None:
        revoked_by = (due_ms for due_ms, _ in self._revoked_by_ms.values())
        self.wake_ms = earliest(*self._silent_until_ms.values(), *revoked_by)
