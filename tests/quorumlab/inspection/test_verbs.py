"""The verbs of `inspect` as people and scripts run them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from quorumlab.cli import main
from tests.quorumlab.inspection.logs import change, cluster, write_log
from wire.metadata_records import ConfigRecord

GOLDEN = Path(__file__).parents[2] / "golden"
NODE = str(GOLDEN / "kraft3/node-1")
OTHER = str(GOLDEN / "kraft3/node-3")


class Said:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code = -1
        self.errors = ""

    def __call__(self, *words: str) -> list[str]:
        self.code = main(["inspect", *words])
        found = self._capsys.readouterr()
        self.errors = found.err
        return found.out.splitlines()

    def json(self, *words: str) -> object:
        return json.loads("\n".join(self(*words)))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_a_state_is_a_table_a_tree_or_json(said: Said) -> None:
    table = said("at", "60", NODE)
    assert table[0].startswith("after offset 60, epoch 1, 2026-11-21T")
    assert any(line.split() == ["metadata.version", "30"] for line in table)
    assert any(line.startswith("1       active") for line in table)
    (row,) = [line for line in table if "Topic: safe\tPartition: 1" in line]
    assert row.endswith("Leader: 2\tReplicas: 2,3,1\tIsr: 2,3,1\tElr: \tLastKnownElr: ")
    assert "    metadata.version: 30" not in table
    assert "  metadata.version: 30" in said("at", "60", "--format", "tree", NODE)
    state = said.json("at", "60", "--format", "json", NODE)
    assert isinstance(state, dict)
    assert state["topics"]["safe"]["partitions"]["1"]["leader"] == 2
    lines = [json.loads(line) for line in said("at", "60", "--format", "jsonl", NODE)]
    assert {"path": "/topics/safe/partitions/1/leader", "value": 2} in lines


def test_a_time_is_as_good_as_an_offset(said: Said) -> None:
    by_time = said("at", "2026-11-21T04:00:33.812Z", NODE)
    assert by_time == said("at", "84", NODE)
    assert by_time == said("at", "1795233633812", NODE)


def test_two_places_of_one_log_are_compared(said: Said) -> None:
    first, second, *changes = said("diff", "104", "110", NODE)
    assert first.startswith(f"--- {NODE} after offset 104")
    assert second.startswith(f"+++ {NODE} after offset 110")
    assert "+ /topics/six/partitions/0/last_known_elr [1]" in changes
    told = said.json("diff", "104", "110", "--format", "json", NODE)
    assert isinstance(told, dict)
    assert told["before"] == {"target": NODE, "offset": 104, "epoch": 2}
    assert {"path": "/offset", "before": 105, "after": 111} in told["changes"]


def test_two_directories_are_compared(said: Said) -> None:
    assert said("diff", NODE, OTHER)[2:] == ["no difference"]
    assert said.code == 0
    killed = str(GOLDEN / "killed/node-1")
    changes = said("diff", NODE, killed)
    assert any(line.startswith("- /topics/six ") for line in changes)
    assert any(line.startswith("+ /topics/t ") for line in changes)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("diff", "104", NODE), "what is B, beside 104"),
        (("diff", "1", "2", "3", NODE), "two TARGETs"),
        (("diff", "1", "2", NODE, "--at", "5"), "--at is for two targets"),
        (("at", "yesterday", NODE), "neither an offset nor a time"),
        (("why", "orders", NODE), "name a partition"),
        (("dump", "--type", "partitoin", NODE), "did you mean PARTITION_RECORD"),
        (("dump", "--offsets", "9-3", NODE), "no range of offsets"),
        (("dump", "--offsets", "9..9", NODE), "has no offset in it"),
        (("dump", "--where", "leader = 3", NODE), "no expression"),
        (("dmup", NODE), "no verb 'dmup': did you mean 'dump'?"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(
    said: Said, words: tuple[str, ...], reason: str
) -> None:
    said(*words)
    assert said.code == 2
    assert reason in said.errors


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("why", "sixx-0", NODE), "did you mean six-0?"),
        (("why", "six-40", NODE), "topic six has 7 partitions"),
        (("why", "9", NODE), "there are brokers 1, 2, 3"),
        (("why", "broker-9", NODE), "broker 9: nothing in this log speaks of it; there are"),
        (("why", "config", "sixx", NODE), "did you mean config six?"),
        (("why", "config", "defaults", NODE), "did you mean config '(default)'?"),
        (("tree", NODE, "/topics/seven"), "there is no 'seven' there"),
        (("summary", "/nowhere"), "no such file or directory, and no HOST:PORT"),
        (("summary", str(GOLDEN / "README.md")), "neither a segment (.log) nor a snapshot"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    said: Said, words: tuple[str, ...], hint: str
) -> None:
    said(*words)
    assert said.code == 1
    assert hint in said.errors


@pytest.mark.parametrize("directory", ["/proc/tables", str(GOLDEN / "README.md")])
def test_tables_that_cannot_be_written_are_told(said: Said, directory: str) -> None:
    assert said("export", NODE, "--parquet", directory) == []
    assert said.code == 1
    assert directory in said.errors


@pytest.mark.parametrize("port", ["0", "70000"])
def test_a_port_that_cannot_be_is_no_address(said: Said, port: str) -> None:
    said(f"localhost:{port}")
    assert "no HOST:PORT" in said.errors


def test_a_snapshot_goes_back_no_further(said: Said) -> None:
    snapshot = f"{NODE}/__cluster_metadata-0/00000000000000000075-0000000001.checkpoint"
    assert said("at", "80", snapshot)[0].startswith("after offset 74")
    assert said.code == 0
    said("at", "70", snapshot)
    assert said.code == 1
    assert "nothing here goes back further" in said.errors
    (line,) = said("verify", snapshot)
    assert line.endswith("1 snapshot, and no log to compare them with")


def test_values_cannot_break_lines_or_a_terminal(said: Said, tmp_path: Path) -> None:
    record = ConfigRecord(resource_type=2, resource_name="orders", name="x", value="a\n\x1b[2J")
    path = str(write_log(tmp_path, cluster(), (record,)).path)
    words = (
        *(("dump", "--type", "config"), ("at", "end"), ("at", "end", "--format", "tree")),
        *(("why", "config orders"), ("tree", "--at", "7"), ("diff", "6", "7")),
    )
    for verb in words:
        lines = said(*verb, path)
        assert not any("\x1b" in line for line in lines), verb
        assert verb[0] == "tree" or any(r"a\n\u001b[2J" in line for line in lines), verb


def test_what_changed_is_put_as_the_other_verbs_put_it(said: Said) -> None:
    fenced = [line for line in said("diff", "104", "110", NODE) if "brokers/1/fenced" in line]
    assert [line.split(maxsplit=1)[1] for line in fenced] == ["false -> true"]


def test_a_violation_is_shown_among_its_neighbours(said: Said, tmp_path: Path) -> None:
    target = write_log(tmp_path, cluster(), (change(isr=(1, 9)),))
    lines = said("verify", str(target.path))
    assert said.code == 4
    assert lines[1].startswith("M-SUB at offset 7")
    assert [line[:10] for line in lines if line.startswith("> ")] == [">        7"]


def test_what_is_lost_is_shown_in_its_place(said: Said, tmp_path: Path) -> None:
    target = write_log(tmp_path, cluster(), (change(isr=(1, 2)),), (change(isr=(1,)),))
    content = bytearray(target.path.read_bytes())
    content[-100] ^= 1
    target.path.write_bytes(content)
    lines = said("verify", str(target.path))
    assert said.code == 4
    assert [line for line in lines if line.startswith("> the checksum")] == [lines[-2]]
    assert lines[-1].split()[0] == "8"


def test_a_tree_is_scripted_by_paths(said: Said) -> None:
    assert said("tree", NODE, "/topics/six/partitions/0/replicas") == ["[2]"]
    assert said("tree", NODE, "--at", "end", "topics") == ["safe/", "six/"]
    assert said("tree", "--at", "40", NODE, "/topics") == ["gone/", "safe/", "six/"][1:]
    ids = said.json("tree", NODE, "/topics/*/id", "--format", "json")
    assert ids == {
        "/topics/safe/id": "H9p_Ty-aS566m0hbpti0vA",
        "/topics/six/id": "LE4ntTROQaW0-Un9CY3IoA",
    }
    assert said("tree", "-r", NODE, "/features")[-1] == "transaction.version: 2"


def test_who_names_nothing_is_told_what_can_be_named(said: Said) -> None:
    assert said() == []
    assert said.code == 2
    assert "name a TARGET, a node's directory or __cluster_metadata-0" in said.errors


def test_voters_are_told_before_and_after_reading_under_two_names(said: Said) -> None:
    """quorum-state may name others than the log does."""
    lines = [line for line in said(NODE) if line.startswith("voters")]
    assert [" ".join(line.split()) for line in lines] == [
        "voters so far 1,2,3, by quorum-state (static voters)",
        "voters 1,2,3, by LeaderChange at offset 99 (static voters)",
    ]


def test_a_snapshot_without_metadata_is_not_denied(said: Said) -> None:
    lines = said(str(GOLDEN / "dynamic/node-1"))
    assert any(line.startswith("snapshot         before offset 0, ") for line in lines)
    (committed,) = [line for line in lines if line.startswith("committed")]
    assert committed.endswith("one log alone cannot tell, and its snapshot holds no metadata")


def test_a_directory_alone_is_summarised(said: Said) -> None:
    assert said(NODE) == said("summary", NODE)
    assert said.code == 0
    with_json = said.json("--format", "json", NODE)
    assert isinstance(with_json, dict)
    assert with_json["problem_count"] == 0


def test_records_are_lines_of_json(said: Said) -> None:
    for form in ("json", "jsonl"):
        (line,) = said("dump", "--offsets", "37", "--format", form, NODE)
        record = json.loads(line)
        assert (record["offset"], record["type"], record["topic"]) == (
            37,
            "PARTITION_RECORD",
            "safe",
        )
    assert said("dump", "--hex", "--offsets", "37", NODE)[1].endswith("base offset = 33")


def test_stories_and_verdicts_are_json_too(said: Said) -> None:
    events = said.json("why", "six-0", "--format", "json", NODE)
    assert isinstance(events, list)
    assert events[0]["text"] == "created on [1], ISR [1], leader 1"
    assert len(said("why", "six-0", "--format", "jsonl", NODE)) == len(events)
    verified = said.json("verify", "--format", "json", NODE)
    assert isinstance(verified, dict)
    assert (verified["violations"], verified["records"]) == ([], 167)


@pytest.mark.parametrize("words", ["'broker 2'", "broker 2", "broker-2", "broker:2", "2"])
def test_a_broker_is_asked_for_with_and_without_quotes(said: Said, words: str) -> None:
    assert said("why", *shlex.split(words), NODE) == said("why", "broker 2", NODE) != []


@pytest.mark.parametrize("thing", ["sixx-0", "config sixx", "config defaults"])
def test_what_may_have_been_meant_works_when_it_is_pasted(said: Said, thing: str) -> None:
    said("why", *thing.split(), NODE)
    (meant,) = re.findall(r"did you mean (.*)\?", said.errors)
    assert said("why", *shlex.split(meant), NODE) != []
    assert said.code == 0


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ("--topic nope --hex", "no record matches --topic nope"),
        ("--topic nope --format json", "no record matches --topic nope"),
        ("--topic nope", "no record matches --topic nope: the topics in it are gone, safe, six"),
        ("--topic saef", "--topic saef: did you mean 'safe'? the topics in it are gone, safe, six"),
        ("--topic six --partition 77", "no record matches --topic six, --partition 77"),
        ("--broker 9", "no record matches --broker 9"),
        ("--type FENCE_BROKER_RECORD", "no record matches --type FENCE_BROKER_RECORD"),
        ("--offsets 900..", "no record matches --offsets 900.."),
        ("--since 2030-01-01", "no record matches --since 2030-01-01"),
        ("--until 1999-01-01", "no record matches --until 1999-01-01"),
        ("--where offset==900", "no record matches --where offset==900"),
    ],
)
def test_a_selection_of_nothing_is_told_beside_the_output(
    said: Said, selection: str, told: str
) -> None:
    """Not an error: what is asked for may not have happened."""
    assert said("dump", *selection.split(), NODE) == []
    assert said.code == 0
    assert told in said.errors
    assert said.errors.count("\n") == 1


@pytest.mark.parametrize("words", ["at PLACE", "tree --at PLACE", "diff 5 PLACE"])
def test_an_offset_that_is_not_there_yet_is_told(said: Said, words: str) -> None:
    assert said(*words.replace("PLACE", "167").split(), NODE) != []
    told = "offset 167 is not there yet: the log ends after offset 166, and this is its state"
    assert told in said.errors
    said(*words.replace("PLACE", "166").split(), NODE)
    assert said.errors == ""
