"""Where an operation is in a history, in one number: of one, and of many at once."""

import numpy as np
import pytest

from jepsen_like.checkers.operations import Operation
from jepsen_like.checkers.verdict import lines, place, places
from jepsen_like.histories.history import Kind


@pytest.mark.parametrize(
    ("invoked", "completed", "found"),
    [(5, 9, 9), (5, -1, -1), (5, 4, -1)],  # the last one's index goes back, as the lint says
)
def test_columns_of_places_are_those_of_operations(
    invoked: int, completed: int, found: int
) -> None:
    column = places(np.array([invoked]), np.array([completed]))
    assert [int(each[0]) for each in lines(column)] == [invoked, found]
    operation = Operation(
        index=invoked,
        process=0,
        f="write",
        argument=1,
        result=1,
        kind=Kind.OK,
        call=0,
        ret=1,
        ret_index=None if completed < 0 else completed,
    )
    assert place(operation) == int(column[0])
