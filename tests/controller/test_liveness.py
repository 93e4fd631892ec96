"""Sessions of brokers."""

from controller.liveness import Liveness
from tests.controller.clusters import cluster, fenced, registered, step
from wire.primitives import INT64_MAX

UP = cluster(1, 2, registered(3, fenced=True))


def fresh(now_ms: int = 1000) -> Liveness:
    made = Liveness(session_timeout_ms=500)
    made.reset(UP, now_ms)
    return made


def test_session_runs_out_at_its_timeout() -> None:
    made = fresh()
    assert made.deadline_ms(UP) == 1500
    assert made.is_live(1, 1499)
    assert made.expired(UP, 1499) is None
    assert not made.is_live(1, 1500)
    assert made.expired(UP, 1500) == 1


def test_heartbeat_renews_a_session() -> None:
    made = fresh()
    made.heard(1, 101, metadata_offset=9, now_ms=1400)
    assert made.expired(UP, 1500) == 2
    assert made.deadline_ms(UP) == 1500
    made.heard(2, 102, metadata_offset=9, now_ms=1450)
    assert made.deadline_ms(UP) == 1900


def test_fenced_brokers_have_nothing_to_lose() -> None:
    image = step(UP, fenced(1), fenced(2))
    made = fresh()
    assert made.expired(image, 10_000) is None
    assert made.deadline_ms(image) is None


def test_unknown_broker_has_no_session() -> None:
    assert not fresh().is_live(9, 1000)
    made = fresh()
    made.forget(1)
    assert not made.is_live(1, 1000)


def test_active_brokers_hold_each_other_back() -> None:
    made = fresh()
    assert made.lowest_active_offset(UP) == -1
    made.heard(1, 101, metadata_offset=9, now_ms=1000)
    made.heard(2, 102, metadata_offset=7, now_ms=1000)
    made.heard(3, 103, metadata_offset=1, now_ms=1000)
    assert made.lowest_active_offset(UP) == 7
    assert made.lowest_active_offset(cluster()) == INT64_MAX


def test_shutdown_offset_is_the_last_and_forgotten_with_a_new_life() -> None:
    made = fresh()
    assert made.shutdown_offset(1) == INT64_MAX
    made.left(1, 50)
    made.left(1, 70)
    assert made.shutdown_offset(1) == 70
    made.registered(1, 900, 2000)
    assert made.shutdown_offset(1) == INT64_MAX


def test_new_controller_lets_nobody_go_before_its_image_is_known() -> None:
    image = cluster(1, registered(2, in_controlled_shutdown=True))
    made = Liveness(session_timeout_ms=500)
    made.reset(image, 0)
    assert made.shutdown_offset(2) == image.at.offset - 1
