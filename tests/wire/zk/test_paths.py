"""Paths as the documents give them."""

import pytest

from wire.zk import paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (paths.broker(3), "/brokers/ids/3"),
        (paths.topic("t"), "/brokers/topics/t"),
        (paths.partition_state("t", 1), "/brokers/topics/t/partitions/1/state"),
        (paths.partition_leader_and_isr("t", 1), "/brokers/topics/t/1/leaderAndISR"),
        (
            paths.partition_under(paths.PARTITIONS_REASSIGNED, "t", 1),
            "/admin/partitions_reassigned/t/1",
        ),
        (paths.partition_under(paths.PARTITIONS_ADD, "t", 1), "/admin/partitions_add/t/1"),
        (paths.partition_leader("t", 1), "/brokers/topics/t/1/leader"),
        (paths.partition_replicas("t", 1), "/brokers/topics/t/1/replicas"),
        (paths.state_queue(2), "/brokers/state/2"),
        (paths.isr_changes_prefix(), "/isr_change_notification/isr_change_"),
        (paths.config("topics", "t"), "/config/topics/t"),
    ],
)
def test_path_is_that_of_its_document(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    "path",
    [
        paths.partition_state("a.b", 12),
        paths.partition_leader_and_isr("a.b", 12),
        paths.partition_isr("a.b", 12),
        paths.partition_under(paths.PARTITIONS_REMOVE, "a.b", 12),
        paths.partition_under(paths.V2_PARTITIONS_REASSIGNED, "a.b", 12),
    ],
)
def test_partition_of_a_path_is_found(path: str) -> None:
    assert paths.partition_of(path) == ("a.b", 12)


@pytest.mark.parametrize("path", ["/", "/controller", "/brokers/topics/t", "/brokers/topics/t/x/y"])
def test_path_without_a_partition_names_none(path: str) -> None:
    assert paths.partition_of(path) is None


@pytest.mark.parametrize("roots", [paths.KAFKA_ROOTS, paths.V3_ROOTS, paths.V2_ROOTS])
def test_every_root_comes_after_its_parents(roots: tuple[str, ...]) -> None:
    for number, path in enumerate(roots):
        assert set(paths.parents(path)) <= set(roots[:number])


def test_parents_come_from_the_top() -> None:
    assert paths.parents("/a/b/c") == ("/a", "/a/b")
    assert paths.parents("/a") == ()
    assert paths.parent("/a") == "/"
    assert paths.last_name("/a/b") == "b"
