"""A target as files, wherever it is: a live log is first copied into a scratch folder.

What a target is, `quorumlab.inspection.target` says; how a live one is read, `live`.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quorumlab.inspection.target import Target, find_target

__all__ = ["opened"]


@contextmanager
def opened(text: str) -> Iterator[Target]:
    """The files of a target; a live log is read into a scratch folder first."""
    target = find_target(text)
    if isinstance(target, Target):
        yield target
        return
    from quorumlab.inspection.live import mirrored  # files need no client, which is slow to load

    with tempfile.TemporaryDirectory(prefix="quorumlab-inspect-") as scratch:
        yield mirrored(target, Path(scratch))
