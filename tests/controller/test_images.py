"""A controller that loads a snapshot is as one that has read the log; and what one gives."""

from random import Random

import pytest

from controller.controller import Controller
from controller.metadata.describe import describe
from quorum.core.application import State
from quorum.core.effects import Stop
from quorum.core.types import OffsetAndEpoch
from tests.controller.fake_log import Quorum
from tests.controller.test_controller import CONTROLLERS, config, create, quorum, start_broker
from wire import metadata_records as records
from wire.batch import data_batch


def state_of(controller: Controller) -> tuple[int, list[bytes]]:
    state = controller.state()
    assert isinstance(state, State)
    return state.end_offset, list(state.batches)


def newcomer(made: Quorum) -> Controller:
    """A controller beside the others that has not heard of anything."""
    return Controller(config(3100), made.seats[CONTROLLERS[1]], Random(1), made.now_ms)


def load(controller: Controller, made: Quorum, end_offset: int, batches: list[bytes]) -> None:
    for number, batch in enumerate(batches):
        controller.load(batch, is_first=number == 0)
    controller.loaded(OffsetAndEpoch(end_offset, made.epoch), made.now_ms)


def lively() -> Quorum:
    made = quorum()
    for broker_id in (1, 2, 3):
        start_broker(made, broker_id)
    made.answer(create("a", partitions=40, factor=3))
    return made


@pytest.mark.parametrize("node_id", CONTROLLERS[:2])
def test_loading_is_the_same_as_reading(node_id: int) -> None:
    made = lively()
    standby = newcomer(made)
    load(standby, made, *state_of(made.controllers[node_id]))
    assert describe(standby.image) == describe(made.active.image)
    assert standby.head is standby.image
    assert standby.take_effects() == []


def test_the_rest_of_the_log_follows_a_snapshot() -> None:
    made = lively()
    end_offset, batches = state_of(made.active)
    known = len(made.batches)
    made.answer(create("b", partitions=3, factor=3))
    standby = newcomer(made)
    load(standby, made, end_offset, batches)
    standby.committed(b"".join(made.batches[known:]), made.last_offset + 1, made.now_ms)
    assert describe(standby.image) == describe(made.active.image)


def test_a_snapshot_replaces_what_was_known() -> None:
    made, other = lively(), quorum()
    start_broker(other, 7)
    standby = other.controllers[CONTROLLERS[1]]
    load(standby, other, *state_of(made.active))
    assert describe(standby.image) == describe(made.active.image)


def test_one_that_loaded_does_not_bootstrap_again() -> None:
    made = lively()
    standby = newcomer(made)
    load(standby, made, *state_of(made.active))
    seat = made.seats[CONTROLLERS[1]]
    assert standby.head.features == made.active.head.features
    made.leader_id, made.epoch = seat.node_id, made.epoch + 1
    before = len(made.batches)
    standby.lead(made.epoch, made.now_ms)
    assert len(made.batches) == before


def test_state_is_what_is_committed() -> None:
    made = lively()
    committed = made.active.image
    made.ask(create("later"))
    end_offset, batches = state_of(made.active)
    assert end_offset == committed.at.offset
    standby = newcomer(made)
    load(standby, made, end_offset, batches)
    assert standby.image.topic("later") is None


def test_there_is_no_state_within_a_transaction_nor_before_the_first_record() -> None:
    made = Quorum()
    active = made.add(config(CONTROLLERS[0]))
    assert active.state() is None
    made.elect(CONTROLLERS[0])
    made.commit()
    assert active.state() is not None
    made.append(
        data_batch([records.encode_record(records.BeginTransactionRecord())], timestamp_ms=1)
    )
    standby = Controller(config(3100), made.seats[CONTROLLERS[0]], Random(1), made.now_ms)
    standby.committed(b"".join(made.batches), made.last_offset + 1, made.now_ms)
    assert standby.state() is None


def test_snapshot_that_cannot_be_loaded_stops_the_process() -> None:
    made = lively()
    standby = newcomer(made)
    standby.load(data_batch([b"\x01\x02\x00\x00"], timestamp_ms=1), is_first=True)
    (stop,) = standby.take_effects()
    assert isinstance(stop, Stop)
    assert "cannot be loaded" in stop.reason
    assert stop.exit_code == 1
