"""The pytest options of a run: quiet, the same examples each time, and no slow tests."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hypothesis import HealthCheck, Phase, settings

__all__ = ["arguments"]

_PROFILE = "mutants"


@contextmanager
def arguments(tests: Sequence[str]) -> Iterator[list[str]]:
    """The command line of pytest for `tests`, which are folders, files or single tests."""
    settings.register_profile(
        _PROFILE,
        settings(
            deadline=None,
            max_examples=40,
            database=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        yield [
            *("-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist"),
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # what trials need is imported
            *("-m", "not extra and not long and not slow", f"--hypothesis-profile={_PROFILE}"),
            *(f"--basetemp={folder}/tests", *tests),
        ]
