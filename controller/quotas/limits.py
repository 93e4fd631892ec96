"""Which quota holds for a user and a client id, and who shares it.

The most specific entity that has a value wins, in Kafka's order of eight. Those who match it by
user and client id have a rate for each pair; those who match it by one of them share a rate.

Source: KIP-55; Kafka's ClientQuotaManager.DefaultQuotaCallback.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from controller.metadata.client_quotas import CLIENT_ID, IP, USER
from controller.metadata.image import QuotaEntities, quota_entity
from wire.metadata_records import QuotaEntity

__all__ = ["Limit", "Limits", "Quotas", "Sharers"]

Quotas = Mapping[QuotaEntities, Mapping[str, float]]  # the section of an image
Sharers = tuple[str | None, str | None]  # user and client id; None: whatever it is

_KNOWN_MAX = 10_000  # clients choose their ids


class Limit(NamedTuple):
    bound: float
    sharers: Sharers


class Limits:
    """The limits that one section of an image sets. What was looked up is kept."""

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.has_any = any(
            item.entity_type != IP for entity in quotas for item in entity
        )  # of users and clients
        self._known: dict[tuple[str, str, str], Limit | None] = {}

    def of(self, key: str, user: str, client_id: str) -> Limit | None:
        asked = (key, user, client_id)
        if asked not in self._known:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[asked] = self._look_up(key, user, client_id)
        return self._known[asked]

    def of_address(self, key: str, address: str) -> float | None:
        for name in (address, None):
            bound = self.quotas.get(_entity({IP: name}), {}).get(key)
            if bound is not None:
                return bound
        return None

    def _look_up(self, key: str, user: str, client_id: str) -> Limit | None:
        for entity, sharers in _levels(user, client_id):
            bound = self.quotas.get(entity, {}).get(key)
            if bound is not None:
                return Limit(bound, sharers)
        return None


def _levels(user: str, client_id: str) -> Iterator[tuple[QuotaEntities, Sharers]]:
    """The entities that this client belongs to, the most specific first. None is the default."""
    for of_user in (user, None):
        for of_client in (client_id, None):
            yield _entity({USER: of_user, CLIENT_ID: of_client}), (user, client_id)
        yield _entity({USER: of_user}), (user, None)
    for of_client in (client_id, None):
        yield _entity({CLIENT_ID: of_client}), (None, client_id)


def _entity(names: Mapping[str, str | None]) -> QuotaEntities:
    return quota_entity(
        QuotaEntity(entity_type=kind, entity_name=name) for kind, name in names.items()
    )
