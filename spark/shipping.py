"""Our code on the workers of any session: an archive that Spark hands to them.

Its name is a hash of its content: a session that lasts gets what is new beside what it has. Workers
need Python with numpy, pyarrow, msgpack and msgspec only.
"""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet
from zipfile import ZipFile, ZipInfo

from jepsen_like.installation import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["is_there", "ship"]

_PACKAGES = ("wire", "quorum", "controller", "broker", "jepsen_like", "spark", "quorumlab")
_HAVE_IT: "WeakSet[SparkSession]" = WeakSet()


def ship(session: "SparkSession") -> None:
    """Nothing happens if it has been done. This process goes on with the code that it has: a
    classic session puts its own copy of an artifact where Python looks first."""
    if session not in _HAVE_IT:
        archive = _archive()
        session.addArtifacts(str(archive), pyfile=True)
        sys.path[:] = [place for place in sys.path if Path(place).name != archive.name]
        is_there(session)


def is_there(session: "SparkSession") -> None:
    """Its workers find our code by themselves."""
    _HAVE_IT.add(session)


@cache
def _archive() -> Path:
    paths = [path for package in _PACKAGES for path in sorted(_files(ROOT / package))]
    directory = Path(tempfile.mkdtemp(prefix="quorumlab-code-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    archive = directory / f"quorumlab-{_digest(paths)}.zip"
    with ZipFile(archive, "w") as packed:
        for path in paths:  # without times: the same content is the same archive
            packed.writestr(ZipInfo(path.relative_to(ROOT).as_posix()), path.read_bytes())
    return archive


def _files(package: Path) -> Iterator[Path]:
    """Also those that are no code: modules read them when they are imported."""
    for path in package.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield path


def _digest(paths: Iterable[Path]) -> str:
    digest = blake2b(digest_size=8)
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
