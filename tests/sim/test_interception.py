"""Rules on the simulated network: held, late, doubled and reordered messages."""

import pytest

from jepsen_like.faults.message_rules import ALWAYS, Action, Armed, FrameRule, Trigger, api_key_of
from jepsen_like.sim.time.virtual_time import VirtualTime
from jepsen_like.sim.world.interception import Interception
from jepsen_like.sim.world.network import LinkFaults, Message, Network
from wire.messages.registration import BrokerHeartbeatRequest, BrokerHeartbeatResponse

HEARTBEAT = api_key_of("BrokerHeartbeat")


class Bench:
    def __init__(self) -> None:
        self.world = VirtualTime(0)
        self.arrived: list[Message] = []
        self.network = Network(
            world=self.world,
            random=self.world.fork("network"),
            faults=LinkFaults(delay_us_min=100, delay_us_mean=1),
            deliver=self.arrived.append,
        )
        self.messages = Interception(self.network, self.arrived.append)

    def send(self, *numbers: int, body: object = None) -> None:
        for number in numbers:
            self.network.send(
                Message(
                    source=1,
                    target=101,
                    channel="heartbeat",
                    correlation=number,
                    is_request=not isinstance(body, BrokerHeartbeatResponse),
                    body=body or BrokerHeartbeatRequest(broker_id=1, current_metadata_offset=0),
                )
            )

    def settle(self) -> list[int]:
        self.world.run_until(self.world.now_us + 1_000_000, events_max=1000)
        return [message.correlation for message in self.arrived]


def rule(action: Action, *, is_request: bool = True, trigger: Trigger = ALWAYS) -> FrameRule:
    return FrameRule(action=action, api_key=HEARTBEAT, is_request=is_request, trigger=trigger)


def test_held_message_arrives_when_released() -> None:
    bench = Bench()
    held = bench.messages.arm(rule(Action.HOLD, trigger=Trigger(count=1)))
    bench.send(1, 2, 3)
    assert bench.settle() == [2, 3]
    assert held.fired == len(held.kept) == 1
    held.release()
    assert bench.settle() == [2, 3, 1]


@pytest.mark.parametrize(
    ("action", "arrived"),
    [
        (Action.DROP, [2, 3]),
        (Action.REORDER, [2, 3, 1]),
        (Action.DUPLICATE, [1, 2, 3, 1]),
    ],
)
def test_first_message_is_struck(action: Action, arrived: list[int]) -> None:
    bench = Bench()
    bench.messages.arm(rule(action, trigger=Trigger(count=1)))
    bench.send(1, 2, 3)
    assert bench.settle() == arrived


def test_late_message_is_overtaken() -> None:
    bench = Bench()
    bench.messages.add(
        Armed(lambda message: message.correlation == 1, action=Action.DELAY, delay_ms=50)
    )
    bench.send(1, 2, 3)
    assert bench.settle() == [2, 3, 1]


def test_response_and_request_are_told_apart() -> None:
    bench = Bench()
    bench.messages.arm(rule(Action.DROP, is_request=False))
    bench.send(1)
    bench.send(2, body=BrokerHeartbeatResponse())
    assert bench.settle() == [1]


def test_what_is_no_message_of_the_protocol_matches_no_rule() -> None:
    bench = Bench()
    bench.messages.arm(rule(Action.DROP))
    bench.send(1, body="refused")
    assert bench.settle() == [1]
