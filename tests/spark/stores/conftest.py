"""Servers for tests of stores. What is missing is told by each test that is skipped."""

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from jepsen_like.real.free_ports import free_ports
from spark.session import java_home
from tests.spark.test_standalone import ROOT, started, until

CACHE = ROOT / ".cache/stores"
_FETCH = "tests/spark/stores/fetch.sh"
_HIDE = """
set -e
mount -t tmpfs tmpfs /mnt
for each in $KEPT; do mkdir -p /mnt/$each; mount --bind $each /mnt/$each; done
for each in $HIDDEN; do mount -t tmpfs tmpfs $each; done
for each in $KEPT; do mkdir -p $each; mount --move /mnt/$each $each; done
cd /
exec "$@"
"""


def fetched(name: str) -> Path:
    """Where it is; else the test is skipped."""
    if not (CACHE / name / "made-of").exists():
        pytest.skip(f"no {CACHE / name}: run {_FETCH} {name}")
    return (CACHE / name).resolve()


@contextmanager
def defaults(directory: Path, settings: Mapping[str, str]) -> Iterator[None]:
    """What every session of ours gets, as from an administrator."""
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (directory / "spark-defaults.conf").write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(directory))
        yield


@pytest.fixture(scope="package")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Settings for a server with an empty bucket."""
    home = fetched("s3")
    port = next(free_ports())
    url = f"http://127.0.0.1:{port}"
    log = tmp_path_factory.mktemp("s3") / "moto.log"
    with log.open("wb") as output:
        command = [str(home / "venv/bin/moto_server"), "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        until(lambda: _is_up(port), f"no server: {log}")
        urlopen(Request(f"{url}/bucket", b"", method="PUT")).close()
        installed = f"{home}/jars/*"  # to hand them over takes a process for each, of each worker
        paths = {f"spark.{each}.extraClassPath": installed for each in ("driver", "executor")}
        yield {**_s3_settings(url), **paths}
    finally:
        server.kill()
        server.wait()


def _is_up(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def _s3_settings(url: str) -> Mapping[str, str]:
    """As for any cluster: what is written appears whole, by the magic committer."""
    cloud = "org.apache.spark.internal.io.cloud"
    options = {
        "endpoint": url,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": "key",
        "secret.key": "secret",
        "committer.name": "magic",
        "attempts.maximum": "2",
    }
    return {
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()},
        "spark.sql.sources.commitProtocolClass": f"{cloud}.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": f"{cloud}.BindingParquetOutputCommitter",
    }


@pytest.fixture(scope="package")
def lonely_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two workers, each with a temporary directory of its own, that do not see this project."""
    inside = _hiding(tmp_path_factory.mktemp("java"))
    trial = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
    if trial.returncode:
        pytest.skip(f"{' '.join(inside[:3])} …: {trial.stderr.strip()}")
    directory = tmp_path_factory.mktemp("cluster")
    port = next(free_ports())
    url = f"spark://127.0.0.1:{port}"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        begin = ("master.Master", *here, "--port", str(port))
        log = stack.enter_context(started("master", directory, *begin))
        until(lambda: "I have been elected leader" in log.read_text(), "no master")
        for name in ("one", "two"):
            work = ("-d", f"{tempfile.gettempdir()}/work-{name}", "--cores", "1", "--memory", "1g")
            join = ("worker.Worker", *here, *work, url)
            stack.enter_context(started(name, directory, *join, inside=inside))
        until(lambda: log.read_text().count("Registering worker") == 2, "no two workers")
        yield url


def _hiding(scratch: Path) -> Sequence[str]:
    """A command that runs another where nothing of the driver's is seen but what is installed."""
    hidden = sorted({str(ROOT), tempfile.gettempdir()}, key=len, reverse=True)
    installed = (sys.prefix, str(java_home(scratch)), str(fetched("s3") / "jars"))
    kept = [each for each in installed if each.startswith(tuple(hidden))]
    unshare = shutil.which("unshare") or "unshare"
    names = [f"KEPT={' '.join(kept)}", f"HIDDEN={' '.join(hidden)}"]
    return ["env", *names, unshare, "-m", "sh", "-c", _HIDE, "sh"]
