"""DescribeClientQuotas: the entities that a filter lets through, with their quotas.

Source: KIP-546; Kafka's ClientQuotasImage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from controller.metadata.configs import Refusal
from controller.metadata.image import MetadataImage, QuotaEntities
from wire.errors import ErrorCode
from wire.messages import client_quotas as messages

__all__ = ["CLIENT_ID", "IP", "USER", "describe_client_quotas"]

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"


class _Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2  # the type is there, whatever the name


@dataclass(frozen=True, slots=True)
class _Filter:
    names: Mapping[str, str | None]  # by type: exactly this name, None being the default's
    types: frozenset[str]  # that have to be there

    def lets_through(self, entity: QuotaEntities, *, is_strict: bool) -> bool:
        named = {item.entity_type: item.entity_name for item in entity}
        if is_strict and len(named) != len(self.names) + len(self.types):
            return False
        return self.types <= named.keys() and all(
            kind in named and named[kind] == name for kind, name in self.names.items()
        )


def describe_client_quotas(
    image: MetadataImage, request: messages.DescribeClientQuotasRequest
) -> messages.DescribeClientQuotasResponse:
    wanted = _filter(request.components)
    if isinstance(wanted, Refusal):
        return wanted.told(messages.DescribeClientQuotasResponse, entries=None)
    return messages.DescribeClientQuotasResponse(
        entries=tuple(
            messages.EntryData(
                entity=tuple(
                    messages.EntityData(entity_type=item.entity_type, entity_name=item.entity_name)
                    for item in entity
                ),
                values=tuple(
                    messages.ValueData(key=key, value=value) for key, value in values.items()
                ),
            )
            for entity, values in image.client_quotas.items()
            if wanted.lets_through(entity, is_strict=request.strict)
        )
    )


def _filter(components: Sequence[messages.ComponentData]) -> _Filter | Refusal:
    names: dict[str, str | None] = {}
    types: set[str] = set()
    for component in components:
        kind = component.entity_type
        refusal = _refusal(component, is_repeated=kind in names or kind in types)
        if refusal is not None:
            return refusal
        if component.match_type == _Match.SPECIFIED:
            types.add(kind)
        else:
            names[kind] = component.match
    kinds = names.keys() | types
    if IP in kinds and len(kinds) > 1:
        message = (
            "Invalid entity filter component combination. IP filter component should not be used"
            " with user or clientId filter component."
        )
        return Refusal(ErrorCode.INVALID_REQUEST, message)
    return _Filter(names, frozenset(types))


def _refusal(component: messages.ComponentData, *, is_repeated: bool) -> Refusal | None:
    kind, match = component.entity_type, component.match
    wrong = None
    if not kind:
        wrong = "Invalid empty entity type."
    elif is_repeated:
        wrong = f"Entity type {kind} cannot appear more than once in the filter."
    elif kind not in (USER, CLIENT_ID, IP):
        return Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    elif component.match_type not in list(_Match):
        wrong = f"Unknown match type {component.match_type}"
    elif component.match_type == _Match.EXACT and match is None:
        wrong = "Request specified MATCH_TYPE_EXACT, but set match string to null."
    elif component.match_type != _Match.EXACT and match is not None:
        name = _Match(component.match_type).name
        wrong = f"Request specified MATCH_TYPE_{name}, but also specified a match string."
    return None if wrong is None else Refusal(ErrorCode.INVALID_REQUEST, wrong)
