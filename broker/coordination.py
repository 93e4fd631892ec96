"""FindCoordinator: a clear refusal, until consumer groups and transactions exist.

The answer must end a client's attempt with a message rather than have it look for ever, so it may
not be one of the retriable codes that "no coordinator" usually has (COORDINATOR_NOT_AVAILABLE).
UNSUPPORTED_VERSION is what we give:

- Kafka's Java client raises any code it does not expect, with our message.
- librdkafka hands permanent errors to the application once, as a consumer error with our message,
  and keeps asking slowly in the background. It looks for a coordinator with assign() too, since it
  has a group id then as well: the one error can be skipped there, if offsets are given.
- kafka-python and aiokafka raise UnsupportedVersionError out of poll() or getone().

GROUP_AUTHORIZATION_FAILED ends the attempt everywhere too, but sends people looking for ACLs.
"""

from wire.errors import ErrorCode
from wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

__all__ = ["NO_GROUPS", "NO_TRANSACTIONS", "find_coordinator"]

NO_GROUPS = (
    "consumer groups are not supported yet: use assign() with partitions and offsets"
    " instead of subscribe()"
)
NO_TRANSACTIONS = "transactions are not supported yet: leave transactional.id out"
_GROUP = 0


def find_coordinator(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    message = NO_GROUPS if request.key_type == _GROUP else NO_TRANSACTIONS
    return FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(
                key=key,
                node_id=-1,
                host="",
                port=-1,
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                error_message=message,
            )
            for key in request.coordinator_keys
        )
    )
