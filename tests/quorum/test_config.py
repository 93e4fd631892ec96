"""Settings that cannot work are refused with the reason."""

import pytest

from quorum.config import QuorumConfig
from quorum.types import Endpoint
from tests.quorum.replicas import config, endpoint


def test_time_outs_follow_from_the_fetch_time_out() -> None:
    settings = config(1, fetch_timeout_ms=2000)
    assert settings.check_quorum_timeout_ms == 3000
    assert settings.begin_epoch_interval_ms == 1000


def test_other_voters_are_asked_for_the_leader_unless_there_are_bootstrap_servers() -> None:
    assert config(1).discovery_servers == (endpoint(2), endpoint(3))
    server = Endpoint(-2, "somewhere", 1)
    assert config(1, bootstrap_servers=(server,)).discovery_servers == (server,)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"node_id": -1}, "node.id"),
        ({"node_id": 9, "voters": ()}, "neither"),
        ({"node_id": 1, "bootstrap_servers": (endpoint(1),)}, "negative ids"),
        ({"node_id": 1, "syncs": False}, "must be synced"),
        ({"node_id": 1, "fetch_timeout_ms": 0}, "fetch_timeout_ms must be positive"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make(**settings)


def make(**settings: object) -> QuorumConfig:
    return config(**settings)  # type: ignore[arg-type]
