"""The lines of an offset checkpoint are kept from one save to the next: the file must not tell."""

from hypothesis import given
from hypothesis import strategies as st

from quorum.core.storage import StorageError
from quorum.log.files.disk import Disk
from quorum.log.files.offset_checkpoint import OffsetCheckpoint

LOGS = [f"{topic}-{partition}" for topic in ("b", "a-b") for partition in (10, 9)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["raise", "set", "lower", "forget", "save", "save", "fail", "restart"]),
        st.sampled_from(LOGS),
        st.integers(0, 30),
    ),
    min_size=10,
    max_size=30,
)


class OneFile(Disk):
    """It holds one file, and may refuse to replace it."""

    content: bytes | None = None
    is_broken = False

    def read_whole(self, _path: str) -> bytes | None:
        return self.content

    def replace(self, _path: str, content: bytes, *, syncs_directory: bool = True) -> None:
        if self.is_broken:
            raise StorageError("the disk is broken")
        self.content = content


def act(checkpoint: OffsetCheckpoint, step: str, log: str, offset: int) -> None:
    topic, _, partition = log.rpartition("-")
    match step:
        case "raise":
            checkpoint.raise_to(log, offset)
        case "set":
            checkpoint.set({(topic, int(partition)): offset})
        case "lower":
            checkpoint.lower_to(log, offset)
        case "forget":
            checkpoint.forget(log)
        case "save":
            checkpoint.save()


def formatted(checkpoint: OffsetCheckpoint) -> bytes:
    """Every line of the file, formatted anew."""
    names = sorted((log.rpartition("-")[0], int(log.rpartition("-")[2]), log) for log in LOGS)
    lines = [
        f"{topic} {partition} {checkpoint.of(log)}\n"
        for topic, partition, log in names
        if log in checkpoint
    ]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()


@given(STEPS)
def test_saved_file_is_what_formatting_all_of_it_would_give(
    steps: list[tuple[str, str, int]],
) -> None:
    disk = OneFile()
    checkpoint = OffsetCheckpoint(disk, "offsets")
    for step, log, offset in (*steps, ("save", LOGS[0], 0)):
        if step == "restart":
            checkpoint = OffsetCheckpoint(disk, "offsets")
        elif step == "fail":
            checkpoint.raise_to(log, offset)
            fail_to_save(disk, checkpoint)
        else:
            act(checkpoint, step, log, offset)
        if step == "save" and disk.content is not None:
            assert disk.content == formatted(checkpoint)


def fail_to_save(disk: OneFile, checkpoint: OffsetCheckpoint) -> None:
    disk.is_broken = True
    try:
        checkpoint.save()
    except StorageError:
        pass
    finally:
        disk.is_broken = False
