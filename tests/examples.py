"""How many examples a property is tried on: a share of what the profile of the run says.

`make test` has the profile `quorumlab`, `make sim` the profile `long` (`tests/conftest.py`).
"""

from hypothesis import settings

__all__ = ["dear"]


def dear(times: int) -> settings:
    """For examples that cost so many times what others do: as many times fewer, at least two."""
    default = settings.default
    assert default is not None, "`tests/conftest.py` loads a profile"
    return settings(max_examples=max(2, default.max_examples // times))
