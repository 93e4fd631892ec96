"""The metadata log is looked for at every node that is named."""

from pathlib import Path

import pytest

from jepsen_like.real.layout import ClusterError
from quorumlab.inspection.live import NoQuorum
from quorumlab.inspection.target import Address
from quorumlab.top.log_follower import LogFollower


def test_log_is_being_loaded_until_every_node_has_been_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = LogFollower([Address("localhost", port) for port in (1, 2)], tmp_path)
    seen: list[bool] = []

    def follow(address: Address, directory: Path) -> None:
        seen.append(follower.is_loading)
        raise (ClusterError if len(seen) < 3 else NoQuorum)(f"{address} refuses")

    monkeypatch.setattr(follower, "_follow", follow)
    monkeypatch.setattr("quorumlab.top.log_follower._AGAIN_SECONDS", 0)
    follower._run()
    assert seen == [True, True, False]
    assert follower.problem == "localhost:1 refuses"
