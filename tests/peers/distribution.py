"""The parts of Kafka's distribution that suites call: its scripts, which run the fetched jars."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from tests.kafka.kafka_jars import jar_dir, java_command, missing_reason

__all__ = ["java_line", "tools", "write_scripts"]

_TOOLS = {
    "kafka-acls.sh": "kafka.admin.AclCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
}


def java_line(main_class: str) -> str:
    """The shell's words for a class of Kafka's; what it is to be told follows."""
    return shlex.join(java_command(main_class, (), log_level="ERROR"))


def tools(*names: str) -> dict[str, str]:
    """Kafka's tools as scripts; none where there are no jars."""
    if missing_reason() is not None:
        return {}
    return {name: f'exec {java_line(_TOOLS[name])} "$@"' for name in names or _TOOLS}


def write_scripts(root: Path, scripts: Mapping[str, str]) -> None:
    """The folders `bin`, and `libs` with the jars."""
    (root / "bin").mkdir()
    for name, line in scripts.items():
        script = root / "bin" / name
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
    (root / "libs").symlink_to(jar_dir())
