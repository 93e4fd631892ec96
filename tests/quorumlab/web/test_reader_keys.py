"""A reader is told where a chaos run may have begun, and nowhere else to look."""

import pytest

from quorumlab.config import node_config
from quorumlab.web.reader_keys import of_node
from tests.quorumlab.test_config import CONTROLLER


@pytest.mark.parametrize(
    ("directory", "run"),
    [
        ("/runs/7/cluster/101/data", "/runs/7"),
        ("/tmp/mine/101/data", None),  # whoever may write there is nobody to ask
        ("/cluster/101/data", "/"),
        ("/101/data", None),
        ("/data", None),
    ],
)
def test_chaos_run_is_looked_for_around_a_cluster_of_one(directory: str, run: str | None) -> None:
    config = node_config(CONTROLLER | {"log.dirs": directory})
    assert of_node(config, 8001)["chaos"] == run
