"""A real cluster of six processes, shared by the tests of this folder.

`tests/conftest.py` gives the folder to one worker.
"""

from collections.abc import Iterator

import pytest

from jepsen_like.real.local_cluster import LocalCluster
from tests.started import started


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with started(
        LocalCluster.create(tmp_path_factory.mktemp("cluster"), controllers=3, brokers=3)
    ) as running:
        yield running
