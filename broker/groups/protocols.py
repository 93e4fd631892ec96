"""A group uses the assignment protocol that every member speaks, and most like best.

The rules are pure. This module also reads the one thing that a coordinator needs of what consumers
tell each other: the topics that they are subscribed to.

Source: Kafka's ClassicGroup.selectProtocol and ConsumerProtocol.
"""

from collections.abc import Collection, Sequence
from struct import error as struct_error

from broker.coordination.fields import Fields
from wire.messages.groups import JoinGroupRequestProtocol
from wire.varint import Malformed

__all__ = ["CONSUMER", "Protocols", "metadata_under", "select", "subscribed_topics", "supports"]

CONSUMER = "consumer"  # the protocol type of consumers, whose subscriptions can be read

Protocols = tuple[JoinGroupRequestProtocol, ...]  # of one member, its favourite first


def metadata_under(protocols: Protocols, name: str | None) -> bytes:
    return next((protocol.metadata for protocol in protocols if protocol.name == name), b"")


def supports(members: Collection[Protocols], wanted: Protocols) -> bool:
    """Is there a protocol among `wanted` that every member speaks?"""
    common = {protocol.name for protocol in wanted}
    for member in members:
        common.intersection_update([protocol.name for protocol in member])
        if not common:
            break
    return bool(common)


def select(members: Sequence[Protocols]) -> str:
    """The protocol with most votes among those that all speak; of equals, the first voted for."""
    assert members, "nobody to choose for"
    spoken = [{protocol.name for protocol in member} for member in members]
    common = set.intersection(*spoken)
    votes: dict[str, int] = {}
    for member in members:
        choice = next(protocol.name for protocol in member if protocol.name in common)
        votes[choice] = votes.get(choice, 0) + 1
    return max(votes, key=votes.__getitem__)


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """The topics in a consumer's subscription, which begins alike in all versions.

    None if it is none: any bytes may stand there.
    """
    fields = Fields(subscription)
    try:
        fields.int16()  # its version
        return frozenset(fields.string() for _ in range(fields.count()))
    except (Malformed, struct_error, UnicodeDecodeError):
        return None
