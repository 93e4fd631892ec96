"""The directory of a run: history, description, verdict; the cluster's directory beside them.

docs/chaos.md says which file has what.
"""

import importlib.metadata
import json
import platform
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jepsen_like.faults.fault import Scheduled, schedule_as_json
from jepsen_like.histories.history import Op, Value
from jepsen_like.histories.timeline import timeline
from jepsen_like.real.layout import ClusterError
from jepsen_like.real.runs.run_options import RunOptions
from jepsen_like.sim.runs.sweep import commit_of_code

__all__ = ["RunDirectory"]

_DESCRIBED = (  # options of a run
    *("design", "workload", "faults", "seconds", "seed", "controllers", "brokers"),
    *("client", "idempotent", "security"),
)
_PACKAGES = ("quorumlab", "confluent-kafka", "aiokafka", "msgpack", "numpy")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    path: Path

    @property
    def history(self) -> Path:
        return self.path / "history.msgpack"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    def create(self) -> None:
        """Raises ClusterError if there is something already."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise ClusterError(f"{self.path} is not empty: a run needs a directory of its own")
        except OSError as error:
            raise ClusterError(f"cannot make {self.path}: {error.strerror}") from error

    def describe(self, options: RunOptions, schedule: Sequence[Scheduled]) -> None:
        described = {name: getattr(options, name) for name in _DESCRIBED}
        described |= {
            "bootstrap_servers": [f"{host}:{port}" for host, port in options.servers],
            "command": options.command,
            "began": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit_of_code(),
            "versions": _versions(),
            "schedule": schedule_as_json(schedule),
        }
        self._write(self.path / "run.json", described)

    def write_verdict(self, told: Value) -> None:
        self._write(self.verdict, told)

    def write_timeline(self, ops: Sequence[Op], evidence: Collection[int]) -> None:
        with (self.path / "timeline.txt").open("w") as file:
            file.writelines(f"{line}\n" for line in timeline(ops, evidence=evidence))

    def write_page(self, page: str) -> None:
        (self.path / "report.html").write_text(page, encoding="ascii")

    def _write(self, path: Path, value: Value) -> None:
        path.write_text(json.dumps(value, indent=2) + "\n")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "kernel": platform.release()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
