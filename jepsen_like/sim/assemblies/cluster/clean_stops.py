"""Judges the mark of an orderly stop on each broker's disk (KIP-966).

M-CLN   a broker whose processes have all stopped in order since the last one that opened a log
        registers with the epoch of that one

The controller takes any other epoch for a log that may be shorter than it was. If that replica is
the last one of an ISR, its next election is an unclean one, though every stop was orderly:

1. Broker 1 is the last of the ISR. It stops in order, and its mark names its epoch.
2. It starts while no controller can be reached, and is stopped in order before it has registered.
3. If that stop wrote its own epoch, -1, over the mark, broker 1 registers as unclean next.
"""

from broker.broker import Broker
from jepsen_like.sim.violation import Violation
from quorum.core.effects import DeleteLog, Effect, OpenLog, Send, Stop
from quorum.log.files import checkpoints
from wire.messages.registration import BrokerRegistrationRequest

__all__ = ["CleanStops"]


class CleanStops:
    """By broker id. Models when `quorum.log.files.log_directory` takes a mark away."""

    KINDS = (OpenLog, DeleteLog, Stop, BrokerRegistrationRequest)  # that it looks at

    def __init__(self) -> None:
        self._marks: dict[int, int] = {}
        self._clean: dict[int, int] = {}  # the epoch of the last process that opened a log
        self._expected: dict[int, int] = {}  # of the process that runs

    def started(self, broker_id: int) -> int:
        """The epoch that a process finds on its disk, -1 for none."""
        self._expected[broker_id] = self._clean.get(broker_id, -1)
        return self._marks.get(broker_id, -1)

    def wiped(self, broker_id: int) -> None:
        self._marks.pop(broker_id, None)
        self._clean.pop(broker_id, None)

    def performing(self, broker: Broker, effect: Effect) -> None:
        broker_id = broker.config.node_id
        match effect:
            case OpenLog() | DeleteLog():
                self.wiped(broker_id)
            case Stop(exit_code=0):
                before = self._marks.get(broker_id)
                self._marks[broker_id] = checkpoints.clean_shutdown_epoch(
                    before, broker.broker_epoch
                )
                if (epoch := _known_epoch(broker)) >= 0:
                    self._clean[broker_id] = epoch
            case Send(body=BrokerRegistrationRequest() as body) if _known_epoch(broker) < 0:
                self._is_told(broker_id, body.previous_broker_epoch)
            case _:
                pass

    def _is_told(self, broker_id: int, previous: int) -> None:
        expected = self._expected[broker_id]
        if previous != expected:
            raise Violation(
                "M-CLN", f"broker {broker_id} registers after epoch {previous}, not {expected}"
            )


def _known_epoch(broker: Broker) -> int:
    """The epoch that this process has, if it can know it: from an answer, or from the metadata,
    which may tell first."""
    own, incarnation = broker.cluster.own_registration, broker.membership.incarnation
    is_published = own is not None and own.incarnation_id == incarnation.id
    return own.epoch if own is not None and is_published else incarnation.registered_epoch
