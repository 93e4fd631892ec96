"""Text is read a block of lines at once: as it would be all at once, wherever a block ends."""

from io import BytesIO

import pytest

from jepsen_like.histories import mappings
from jepsen_like.histories.history import MalformedHistory, Op
from jepsen_like.histories.interchange import READERS

READ = "{:type :invoke, :process 0, :f :read, :value nil}"
OK = "{:type :ok, :process 0, :f :read, :value {:a [1 {:b 2}]}}"
TWO = f"{READ}\n{OK}"


def ops_of(text: str, suffix: str = ".edn") -> list[Op]:
    """Raises `MalformedHistory`."""
    _, blocks = READERS[suffix](BytesIO(text.encode()))
    return [op for block in blocks for op in block.ops()]


@pytest.mark.parametrize("before", ["", "\n", "; a vector [\n", ",\n\n"])
@pytest.mark.parametrize("after", ["", "\n", " ; the end ]\n", ",\n\n", "\n;\n"])
def test_a_vector_begins_and_ends_anywhere(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (1, 40, 1 << 20):
        monkeypatch.setattr(mappings, "_BLOCK_BYTES", size)
        assert ops_of(f"{before}[{TWO}]{after}") == ops_of(TWO)


@pytest.mark.parametrize(
    "text",
    [
        f"[{TWO}",
        f"[{TWO}] {OK}",
        f"[{TWO}]]",
        f"{TWO}]",
        "{:type :ok, :process 0, :f :read, :value [1 2}}",
        "{:type :ok, :process 0, :f :read, :value {1 2]}",
        "{:type :ok, :process 0, :f :read, :value 1]",
        "[:type :ok, :process 0, :f :read, :value 1}",
    ],
)
def test_brackets_that_do_not_match_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 1 << 20):
        monkeypatch.setattr(mappings, "_BLOCK_BYTES", size)
        with pytest.raises(MalformedHistory):
            ops_of(text)


def test_null_is_a_name_in_edn() -> None:
    (op,) = ops_of("{:type :ok, :process 0, :f :read, :value null}")
    assert op.value == "null"


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ('{"type": "ok", "process": 0, "f": "read", "value": 1, "index": null}', ".jsonl"),
        ('{"type": "ok", "process": 0, "f": "read", "value": 1, "time": null}', ".jsonl"),
        ("{:type :ok, :process 0, :f :read, :value 1, :index nil}", ".edn"),
    ],
)
def test_an_index_that_is_nothing_is_not_one_that_is_missing(text: str, suffix: str) -> None:
    with pytest.raises(MalformedHistory, match="whole numbers"):
        ops_of(text, suffix)


def test_an_object_of_json_is_one_line() -> None:
    one = '{"type": "ok", "process": 0, "f": "read", "value": 1}'
    broken = one.replace(", ", ",\n", 1)
    with pytest.raises(MalformedHistory, match="line 1: not JSON"):
        ops_of(f"{broken}\n{one} {one}", ".jsonl")


UNUSUAL = "{:type :ok, :process 0, :f :read, :value #inst 1}"  # the block is read one by one


@pytest.mark.parametrize(
    "value", [":", "[: 1]", "{: 1}", "[1 :]", ":,", "[" * 150 + "]" * 150, "1" * 1500]
)
def test_what_is_refused_one_by_one_is_refused_at_once(value: str) -> None:
    text = OK.replace("{:a [1 {:b 2}]}", value)
    for block in (text, f"{text}\n{UNUSUAL}", f"[{UNUSUAL}\n{text}]"):
        with pytest.raises(MalformedHistory, match="line "):
            ops_of(block)


def test_a_mapping_may_be_a_key() -> None:
    [op] = ops_of(OK.replace("{:a [1 {:b 2}]}", "{{:a [1]} 2, #t {} 3}"))
    assert op.value == {(("a", (1,)),): 2, (): 3}


@pytest.mark.parametrize("depth", range(95, 101))
def test_values_of_a_vector_are_as_deep_in_its_last_block_as_in_the_first(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands beside them."""
    deep = OK.replace("{:a [1 {:b 2}]}", "[" * depth + "]" * depth)
    both = f"{deep} {UNUSUAL}"
    told = set()
    for size in (1, 1 << 20):
        monkeypatch.setattr(mappings, "_BLOCK_BYTES", size)
        for lines in ([both, READ, READ], [READ, READ, both], [deep, READ], [READ, deep]):
            try:
                told.add(bool(ops_of("[" + "\n".join(lines) + "]")))
            except MalformedHistory:
                told.add(False)
    assert len(told) == 1


def test_what_is_as_deep_and_long_as_may_be_is_read() -> None:
    for value in ("[" * 90 + "7" + "]" * 90, "7" * 1000, ":" + "a" * 1500, '"' + "a" * 1500 + '"'):
        (op,) = ops_of(OK.replace("{:a [1 {:b 2}]}", value))
        assert str(op.value).strip("[]") == value.strip('[]:"')
