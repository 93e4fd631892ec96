"""Every API, asked by everybody, answers as Apache Kafka's does: in the newest version, and in the
oldest. The whole of it: `python -m tests.security_matrix`."""

from pathlib import Path

import pytest

from tests.kafka.interop import needs_kafka
from tests.security_matrix.asking import Matrix, asked_apis
from tests.security_matrix.rights import PEOPLE, RIGHTS
from tests.security_matrix.sides import secured_sides
from wire.api_table import APIS


def test_every_api_has_its_rights() -> None:
    assert set(RIGHTS) == {api.name for api in APIS}


@pytest.mark.extra
@pytest.mark.slow
def test_everybody_is_answered_as_by_kafka(tmp_path: Path) -> None:
    with secured_sides(tmp_path) as sides:
        matrix = Matrix(*sides)
        matrix.prepare()
        cells = list(matrix.cells(versions=lambda served: [served[0], served[-1]]))
    assert len({(cell.listener, cell.who) for cell in cells}) == 2 * len(PEOPLE)
    assert {cell.api.name for cell in cells} >= {api.name for api, _ in asked_apis("controller")}
    told = [line for cell in cells for line in cell.unexplained]
    assert not told, "\n".join(told)


pytestmark = [mark for mark in needs_kafka if mark.name == "skipif"]
