"""Three nodes of PySyncObj as processes, with a journal that is never synced (see `durable`)."""

import importlib.metadata
import importlib.util
import json
import subprocess
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from benchmarks.figures import ROOT
from benchmarks.peers.load import Load, Sample
from jepsen_like.python_children import python_command, python_environment
from jepsen_like.real.free_ports import free_ports

__all__ = ["PySyncObj"]

_READY_SECONDS = 20.0


class PySyncObj:
    name = "pysyncobj"
    durable = "no: its journal is never synced"
    warm_up_seconds = 0.5

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._nodes: list[subprocess.Popen[str]] = []

    @staticmethod
    def missing() -> str | None:
        """Why it cannot be measured here; None if it can."""
        if importlib.util.find_spec("pysyncobj") is not None:
            return None
        return "pysyncobj is not installed (PyPI: pysyncobj)"

    @staticmethod
    def version() -> str:
        return importlib.metadata.version("pysyncobj")

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True)
        ports = free_ports()
        addresses = [f"127.0.0.1:{next(ports)}" for _ in range(3)]
        for index, own in enumerate(addresses):
            others = [address for address in addresses if address != own]
            self._nodes.append(self._start(index, own, others))
        try:
            self._wait_for_leader()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def measure(self, load: Load) -> Sample:
        return Sample(**_ask(self._leader(), {"do": "load", "load": asdict(load)}))

    def committed(self) -> int:
        return int(_ask(self._leader(), {"do": "applied"}))

    def processes(self) -> list[int]:
        return [node.pid for node in self._nodes]

    def _start(self, index: int, own: str, others: list[str]) -> subprocess.Popen[str]:
        journal = str(self._directory / f"journal-{index}")
        arguments = python_command("benchmarks.peers.pysyncobj_node", journal, own, *others)
        with (self._directory / f"n{index}.log").open("wb") as log:
            return subprocess.Popen(
                arguments,
                cwd=ROOT,
                env=python_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def _leader(self) -> subprocess.Popen[str]:
        for node in self._nodes:
            if _ask(node, {"do": "status"})["leads"]:
                return node
        raise RuntimeError("PySyncObj has no leader")

    def _wait_for_leader(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            answers = [_ask(node, {"do": "status"}) for node in self._nodes]
            if all(each["ready"] for each in answers) and any(each["leads"] for each in answers):
                return
            time.sleep(0.1)
        raise RuntimeError(f"PySyncObj has no leader after {_READY_SECONDS:.0f} s")

    def _stop(self) -> None:
        for node in self._nodes:
            node.kill()
        for node in self._nodes:
            node.communicate()
        self._nodes.clear()


def _ask(node: subprocess.Popen[str], order: dict[str, Any]) -> Any:
    assert node.stdin is not None
    assert node.stdout is not None
    node.stdin.write(json.dumps(order) + "\n")
    node.stdin.flush()
    line = node.stdout.readline()
    if not line:
        raise RuntimeError(f"a node of PySyncObj ended, with exit code {node.wait()}")
    return json.loads(line)
