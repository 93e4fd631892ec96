"""Settings that cannot work are refused with the reason."""

import pytest

from quorum.raft.config import QuorumConfig
from tests.quorum.replicas import config, endpoint


def test_time_outs_follow_from_the_fetch_time_out() -> None:
    settings = config(1, fetch_timeout_ms=2000)
    assert settings.check_quorum_timeout_ms == 3000
    assert settings.begin_epoch_interval_ms == 1000


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"node_id": -1}, "node.id"),
        ({"node_id": 9, "voters": ()}, "neither"),
        ({"node_id": 1, "bootstrap_servers": (endpoint(1),)}, "negative ids"),
        ({"node_id": 1, "bootstrap_servers": (endpoint(0),)}, "negative ids"),
        ({"node_id": 1, "syncs": False}, "must be synced"),
        ({"node_id": 1, "fetch_timeout_ms": 0}, "fetch_timeout_ms must be positive"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make(**settings)


def make(**settings: object) -> QuorumConfig:
    return config(**settings)  # type: ignore[arg-type]
