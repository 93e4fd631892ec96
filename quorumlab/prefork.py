"""Nodes of a local cluster as forks of one process, which has loaded their code once.

    python -P -m quorumlab.prefork NODE...      a NODE is JSON: {"arguments": [...], "log": PATH}

Loading costs a node a second of processor time: six that start together would spend it six times,
and hold their modules in memory as often. Each fork is a process as if it had been started alone:
it has a session, a log and a command line of its own, and nobody waits for it. What is drawn at
random is drawn after the fork. The pids are printed, one a line, in the order of the nodes.

Only for Linux, where forking a process that has loaded much is safe as long as it has one thread.
"""

import ctypes
import gc
import json
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from jepsen_like.python_children import python_command
from quorumlab.cli import main as run_verb
from quorumlab.config import ConfigError, NodeConfig, load
from wire.canonical import preload

__all__ = ["main"]

_ARGUMENTS_BEGIN, _ARGUMENTS_END = 45, 46  # fields of /proc/self/stat behind the command's name


def main(nodes: Sequence[str]) -> int:
    wanted = [json.loads(node) for node in nodes]
    _load_code([_config_of(node["arguments"]) for node in wanted])
    gc.collect()
    gc.freeze()  # a collection would write to every page that the forks share
    for node in wanted:
        pid = os.fork()
        if pid == 0:
            return _run(node["arguments"], node["log"])
        print(pid, flush=True)
    return 0


def _config_of(arguments: Sequence[str]) -> Path:
    return Path(arguments[arguments.index("--config") + 1])


def _load_code(configs: Sequence[Path]) -> None:
    import_module("quorumlab.verbs.run_node")
    preload()
    for config in configs:
        try:
            node = load(config, os.environ)
        except (ConfigError, OSError):
            continue  # the node itself will say so, in its log
        for module in _parts_of(node):
            import_module(module)


def _parts_of(node: NodeConfig) -> Iterator[str]:
    """The modules that a node imports where the part begins."""
    if node.design is not None:
        yield "quorumlab.zk_side"
        return
    if node.is_controller:
        yield "controller.controller"
    if node.is_broker:
        yield "quorumlab.broker_side"


def _run(arguments: Sequence[str], log: str) -> int:
    """The rest of a fork's life, as a process of its own."""
    os.setsid()
    _redirect(os.devnull, os.O_RDONLY, 0)
    _redirect(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 1, 2)
    _show_command(python_command("quorumlab", *arguments))
    return run_verb(arguments)


def _redirect(path: str, how: int, *descriptors: int) -> None:
    opened = os.open(path, how, 0o644)
    for descriptor in descriptors:
        os.dup2(opened, descriptor)
    os.close(opened)


def _show_command(words: Sequence[str]) -> None:
    """Writes over this process's arguments, which `ps` and `quorumlab doctor` read.

    Those of the process that forked were longer: they hold the words of every node.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
    if begin == 0:
        return  # a sandbox that does not tell
    shown = b"".join(os.fsencode(word) + b"\0" for word in words)
    assert len(shown) <= end - begin, "the arguments of one node fit where all of them were"
    ctypes.memmove(begin, shown.ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
