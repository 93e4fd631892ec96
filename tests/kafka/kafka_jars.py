"""Run a real Apache Kafka, and its command-line tools, from Maven's jars.

The jars are a tool for the extra tests and for the golden files, no part of
the product.  ``tests/kafka/fetch.sh`` brings the versions pinned in
``pom-*.xml`` into ``.cache/kafka/<version>/`` under the
repository root.  A test that wants them begins with::

    reason = missing_reason()
    if reason is not None:
        print(f"skip: {reason}")
        return

``line`` chooses the version everywhere: ``"4"`` (the default), ``"4.4"`` or ``"3.9"``.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Self

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / ".cache" / "kafka"

READY_PATTERN = r"Kafka Server started|\[KafkaServer id=\d+\] started"

# Short-lived and small: no second compiler tier, the simplest collector.
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class JarsMissing(RuntimeError):
    """The Kafka jars (or Java) are not on this machine."""


class NotReady(RuntimeError):
    """A Kafka node ended, or did not become ready in time."""


def version(line: str = "4") -> str:
    """The exact Kafka version pinned for ``line``."""
    found = re.search(r"<kafka\.version>([^<]+)<", (HERE / f"pom-{line}.xml").read_text())
    if found is None:
        raise ValueError(f"pom-{line}.xml pins no kafka.version")
    return found.group(1)


def jar_dir(line: str = "4") -> Path:
    """Where the jars of ``line`` are, or would be."""
    return CACHE / version(line)


def missing_reason(line: str = "4") -> str | None:
    """Why Kafka cannot be run, in one sentence; None when it can."""
    if shutil.which("java") is None:
        return "no java on the PATH (Kafka wants Java 17)"
    if not any(jar_dir(line).glob("kafka_2.13-*.jar")):
        return f"no Kafka {version(line)} jars: run tests/kafka/fetch.sh {line}"
    return None


def java_command(
    main_class: str,
    args: Iterable[str],
    *,
    line: str = "4",
    heap: str = "256m",
    log_level: str = "WARN",
    jvm_options: Sequence[str] = (),
) -> list[str]:
    """The command that runs ``main_class``; raises JarsMissing."""
    reason = missing_reason(line)
    if reason is not None:
        raise JarsMissing(reason)
    return [
        "java",
        f"-Xmx{heap}",
        *JVM_OPTIONS,
        *_shared_classes(line),
        f"-Dkafka.log.level={log_level}",
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
        f"-Dlog4j.configuration={(HERE / 'log4j.properties').as_uri()}",
        *jvm_options,
        "-cp",
        f"{jar_dir(line)}/*",
        main_class,
        *args,
    ]


@cache
def _shared_classes(line: str) -> tuple[str, ...]:
    """The options for an archive of loaded classes, which halves what starting a tool costs.

    It is made once, beside the jars, by a tool that finds no broker. Java does without an archive
    that does not fit its version or its jars.
    """
    archive = jar_dir(line) / "tools.jsa"
    if not archive.exists():
        made = archive.with_name(f"{os.getpid()}.jsa")
        impatient = made.with_suffix(".properties")
        write_properties(impatient, {"default.api.timeout.ms": 1000, "request.timeout.ms": 1000})
        dump = ["java", *JVM_OPTIONS, f"-XX:ArchiveClassesAtExit={made}", "-cp"]
        tool = [f"{jar_dir(line)}/*", "org.apache.kafka.tools.TopicCommand", "--list"]
        nobody = ["--bootstrap-server", "127.0.0.1:1", "--command-config", str(impatient)]
        subprocess.run([*dump, *tool, *nobody], capture_output=True, timeout=120, check=False)
        impatient.unlink()
        if made.exists():
            made.rename(archive)
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive.exists() else ()


def run_tool(
    main_class: str,
    args: Iterable[str],
    *,
    line: str = "4",
    timeout: float = 120.0,
    heap: str = "256m",
    stdin: str | None = None,
    cwd: str | Path | None = None,
    check: bool = False,
    jvm_options: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end and give its text output."""
    return subprocess.run(
        java_command(main_class, args, line=line, heap=heap, jvm_options=jvm_options),
        input="" if stdin is None else stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        check=check,
    )


def write_properties(path: str | Path, properties: Mapping[str, object]) -> Path:
    """Write a Java properties file (plain values only) and give its path."""
    target = Path(path)
    lines = [f"{key}={value}\n" for key, value in properties.items()]
    target.write_text("".join(lines), encoding="ascii")
    return target


class JavaServer:
    """A Java server process: its output in a file, ended by its pid.

    Use it as a context manager, or call start(), wait_ready(), stop().
    """

    def __init__(
        self,
        main_class: str,
        args: Sequence[str],
        output: str | Path,
        *,
        line: str = "4",
        heap: str = "384m",
        ready_pattern: str | None = READY_PATTERN,
        ready_ports: Sequence[tuple[str, int]] = (),
        ready_timeout: float = 120.0,
        stop_timeout: float = 60.0,
        cwd: str | Path | None = None,
        jvm_options: Sequence[str] = (),
    ) -> None:
        self.output = Path(output)
        self.ready_timeout = ready_timeout
        self.stop_timeout = stop_timeout
        self._command = java_command(
            main_class, args, line=line, heap=heap, log_level="INFO", jvm_options=jvm_options
        )
        self._ready_pattern = None if ready_pattern is None else re.compile(ready_pattern)
        self._ready_ports = list(ready_ports)
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._output_start = 0
        self._sink: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; raises when it was never started."""
        if self._process is None:
            raise RuntimeError("not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def log_text(self) -> str:
        """What the present (or last) run has written so far."""
        if not self.output.exists():
            return ""
        with self.output.open("rb") as source:
            source.seek(self._output_start)
            return source.read().decode("utf-8", "replace")

    def start(self) -> None:
        """Start the process, without waiting for it to be ready."""
        if self.running:
            raise RuntimeError("already running")
        self._sink = self.output.open("ab")
        self._output_start = self.output.stat().st_size
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=self._sink,
            stderr=subprocess.STDOUT,
            cwd=self._cwd,
            start_new_session=True,
        )
        atexit.register(self.kill)

    def wait_ready(self) -> None:
        """Return once the ready line was logged and the ports answer."""
        deadline = time.monotonic() + self.ready_timeout
        while time.monotonic() < deadline:
            if not self.running:
                raise NotReady(f"ended while starting: {self._tail()}")
            if self._is_ready():
                return
            time.sleep(0.1)
        raise NotReady(f"not ready after {self.ready_timeout:.0f} s: {self._tail()}")

    def stop(self) -> int:
        """Orderly stop (SIGTERM); the exit status.  Kills it when it hangs."""
        return self._end(signal.SIGTERM, self.stop_timeout)

    def kill(self) -> None:
        """End it at once (SIGKILL); nothing is flushed by the process."""
        if self._process is not None:
            self._end(signal.SIGKILL, 10.0)

    def _end(self, how: signal.Signals, timeout: float) -> int:
        if self._process is None:
            raise RuntimeError("not started")
        if self._process.poll() is None:
            os.kill(self._process.pid, how)
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait(10.0)
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        atexit.unregister(self.kill)
        return status

    def _is_ready(self) -> bool:
        if self._ready_pattern is not None and not self._ready_pattern.search(self.log_text()):
            return False
        return all(_port_open(host, port) for host, port in self._ready_ports)

    def _tail(self) -> str:
        return self.log_text()[-2000:]

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.running:
            self.stop()


class KafkaNode(JavaServer):
    """One real Kafka node (broker, controller or both) from a properties file.

    The directory must have been formatted (see ``format_storage``), except in
    ZooKeeper mode of 3.9.  ``ready_ports`` may name listeners to be polled in
    addition to (or, with ``ready_pattern=None``, instead of) the log line.
    """

    def __init__(
        self,
        server_properties: str | Path,
        output: str | Path,
        *,
        line: str = "4",
        heap: str = "384m",
        ready_pattern: str | None = READY_PATTERN,
        ready_ports: Sequence[tuple[str, int]] = (),
        ready_timeout: float = 120.0,
        stop_timeout: float = 60.0,
        cwd: str | Path | None = None,
    ) -> None:
        super().__init__(
            "kafka.Kafka",
            [str(server_properties)],
            output,
            line=line,
            heap=heap,
            ready_pattern=ready_pattern,
            ready_ports=ready_ports,
            ready_timeout=ready_timeout,
            stop_timeout=stop_timeout,
            cwd=cwd,
        )


def format_storage(
    server_properties: str | Path,
    cluster_id: str,
    *options: str,
    line: str = "4",
    cwd: str | Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """``kafka-storage format`` of the directories of a node; raises if it fails."""
    done = run_tool(
        "kafka.tools.StorageTool",
        ["format", "--cluster-id", cluster_id, "--config", str(server_properties), *options],
        line=line,
        cwd=cwd,
    )
    if done.returncode != 0:
        raise RuntimeError(f"format failed ({done.returncode}): {done.stdout}{done.stderr}")
    return done


def _port_open(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False
