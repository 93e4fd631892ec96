"""Whose data directory is it? Every wrong answer in words that say what to do."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from quorum.core.storage import StorageError
from quorum.log.files.checkpoints import CLEAN_SHUTDOWN, META_PROPERTIES, CorruptFile
from quorum.node.directories import (
    LOCK,
    DirectoryInUse,
    NotFormatted,
    WrongDirectory,
    format_directory,
    is_formatted,
    open_directory,
)

CLUSTER = "4L6g3nShT-eMCtK--X86sw"


@pytest.fixture
def directory(tmp_path: Path) -> str:
    path = str(tmp_path / "data")
    format_directory(path, cluster_id=CLUSTER, node_id=1, bootstrap=(b"\1\2\3",))
    return path


def test_formatted_directory_opens(directory: str) -> None:
    assert is_formatted(directory)
    opened = open_directory(directory, node_id=1, cluster_id=CLUSTER)
    assert (opened.cluster_id, opened.node_id) == (CLUSTER, 1)
    assert opened.directory_id.int >= 100
    assert opened.bootstrap() == (b"\1\2\3",)
    assert not opened.was_clean
    opened.close()


def test_directory_id_stays(directory: str) -> None:
    first = open_directory(directory, node_id=1)
    first.close()
    second = open_directory(directory, node_id=1)
    second.close()
    assert first.directory_id == second.directory_id


def test_missing_directory_id_is_made_up_once(directory: str) -> None:
    path = Path(directory, META_PROPERTIES)
    lines = [line for line in path.read_text().splitlines() if "directory.id" not in line]
    path.write_text("\n".join(lines))
    ids: set[UUID] = set()
    for _ in range(2):
        opened = open_directory(directory, node_id=1)
        ids.add(opened.directory_id)
        opened.close()
    assert len(ids) == 1


def test_second_format_is_refused_and_changes_nothing(directory: str) -> None:
    before = Path(directory, META_PROPERTIES).read_bytes()
    with pytest.raises(WrongDirectory, match="formatted already"):
        format_directory(directory, cluster_id=CLUSTER, node_id=1)
    assert Path(directory, META_PROPERTIES).read_bytes() == before


def test_directory_of_somebody_else_is_not_formatted(tmp_path: Path) -> None:
    Path(tmp_path, "thesis.tex").write_text("years of work")
    with pytest.raises(WrongDirectory, match=r"thesis\.tex"):
        format_directory(str(tmp_path), cluster_id=CLUSTER, node_id=1)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_directory_without_meta_properties_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(NotFormatted, match=f"{tmp_path} is not formatted.*quorumlab format"):
        open_directory(str(tmp_path), node_id=1)


def test_no_directory_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(NotFormatted, match=r"does not exist; .*quorumlab format"):
        open_directory(str(tmp_path / "nowhere"), node_id=1)


def test_file_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(WrongDirectory, match=r"is no directory: correct it"):
        open_directory(str(path), node_id=1)
    with pytest.raises(WrongDirectory, match=r"is no directory: correct it"):
        format_directory(str(path), cluster_id=CLUSTER, node_id=1)
    assert path.read_text() == ""


def test_other_node_is_refused(directory: str) -> None:
    with pytest.raises(WrongDirectory, match=r"belongs to node 1, but node\.id is 2"):
        open_directory(directory, node_id=2)


def test_other_cluster_is_refused(directory: str) -> None:
    with pytest.raises(WrongDirectory, match=f"belongs to cluster {CLUSTER}, not to other"):
        open_directory(directory, node_id=1, cluster_id="other")


def test_damaged_meta_properties_name_file_and_line(directory: str) -> None:
    Path(directory, META_PROPERTIES).write_text("version=1\nrubbish\n")
    with pytest.raises(CorruptFile, match=r"meta\.properties, line 2"):
        open_directory(directory, node_id=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_directory_is_named(directory: str) -> None:
    os.chmod(directory, 0)
    try:
        with pytest.raises(StorageError, match=f"{directory} cannot be read"):
            open_directory(directory, node_id=1)
    finally:
        os.chmod(directory, 0o755)


def test_directory_in_use_names_the_process(directory: str) -> None:
    holder = open_directory(directory, node_id=1)
    with pytest.raises(DirectoryInUse, match=f"in use by process {os.getpid()}"):
        open_directory(directory, node_id=1)
    holder.close()
    open_directory(directory, node_id=1).close()


def test_directory_in_use_by_another_process_names_it(directory: str) -> None:
    program = (
        "import sys\n"
        "from quorum.node.directories import open_directory\n"
        f"held = open_directory({directory!r}, node_id=1)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(DirectoryInUse, match=f"in use by process {child.pid}"):
            open_directory(directory, node_id=1)
        child.kill()
        child.wait()
        open_directory(directory, node_id=1).close()  # a lock does not outlive its process


def test_directory_on_a_full_disk_is_refused_in_words(directory: str) -> None:
    lock = Path(directory) / LOCK
    lock.unlink(missing_ok=True)
    lock.symlink_to("/dev/full")
    with pytest.raises(StorageError, match=rf"cannot write {lock}: "):
        open_directory(directory, node_id=1)


def test_lock_is_the_one_that_kafka_takes(directory: str) -> None:
    """Java's FileLock is a POSIX lock: see /proc/locks."""
    opened = open_directory(directory, node_id=1)
    inode = os.stat(f"{directory}/{LOCK}").st_ino
    locks = [line for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line]
    assert any("POSIX" in line for line in locks)
    assert any("FLOCK" in line for line in locks)
    opened.close()


def test_mark_of_an_orderly_stop_is_read_until_a_process_opens_a_log(directory: str) -> None:
    """One that ends before, however it ends, has changed nothing."""
    Path(directory, CLEAN_SHUTDOWN).write_bytes(b'{"version":0,"brokerEpoch":17}')
    for _ in range(2):
        opened = open_directory(directory, node_id=1)
        opened.close()
        assert (opened.was_clean, opened.previous_broker_epoch) == (True, 17)
