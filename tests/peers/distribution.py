"""The parts of Kafka's distribution that suites call: its scripts, which run the fetched jars."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from tests.kafka.interop import TOOLS
from tests.kafka.kafka_jars import jar_dir, java_command, missing_reason

__all__ = ["java_line", "tools", "write_scripts"]


def java_line(main_class: str) -> str:
    """The shell's words for a class of Kafka's; what it is to be told follows."""
    return shlex.join(java_command(main_class, (), log_level="ERROR"))


def tools(*names: str) -> dict[str, str]:
    """Scripts of them: `topics` is `kafka-topics.sh`. There are none where there are no jars."""
    if missing_reason() is not None:
        return {}
    return {f"kafka-{name}.sh": f'exec {java_line(TOOLS[name])} "$@"' for name in names}


def write_scripts(root: Path, scripts: Mapping[str, str]) -> None:
    """The folders `bin`, and `libs` with the jars."""
    (root / "bin").mkdir()
    for name, line in scripts.items():
        script = root / "bin" / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
    (root / "libs").symlink_to(jar_dir())
