"""`quorumlab format`: how a controller begins, and what is refused."""

from pathlib import Path

import pytest

from quorum.log.files.checkpoints import parse_meta_properties
from quorum.node.bootstrap import parse_bootstrap
from quorum.node.directories import read_meta_properties
from quorum.raft.voter_history import control_records, voters_of
from quorum.raft.voters import VoterSet
from quorumlab.cli import main
from quorumlab.config import ConfigError, NodeConfig, node_config
from quorumlab.first_records import initial_controllers
from wire.control_records import Voters
from wire.metadata_records import FeatureLevelRecord, decode_record

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
OWN, OTHER = "AQIDBAUGBwgJCgsMDQ4PEA", "EQIDBAUGBwgJCgsMDQ4PEA"
CHECKPOINT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def properties(directory: Path, **changes: str) -> dict[str, str]:
    plain = {
        "process.roles": "controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": "CONTROLLER://localhost:9093",
        "log.dirs": str(directory / "data"),
    }
    return plain | {name.replace("_", "."): value for name, value in changes.items()}


def written(directory: Path, **changes: str) -> list[str]:
    """The command that formats the node of this configuration."""
    config = directory / "server.properties"
    lines = (f"{key}={value}\n" for key, value in properties(directory, **changes).items())
    config.write_text("".join(lines))
    return ["format", "--config", str(config)]


def run(directory: Path, *options: str, **changes: str) -> int:
    return main([*written(directory, **changes), "--cluster-id", CLUSTER, *options])


def first_voters(directory: Path) -> VoterSet | None:
    path = directory / "data" / CHECKPOINT
    if not path.exists():
        return None
    records = [record for _, record in control_records(path.read_bytes())]
    (voters,) = [record for record in records if isinstance(record, Voters)]
    return voters_of(voters, "CONTROLLER")


def directory_id(directory: Path) -> object:
    path = directory / "data" / "meta.properties"
    return parse_meta_properties(path.read_bytes(), str(path)).directory_id


def test_standalone_controller_is_the_only_voter(tmp_path: Path) -> None:
    assert run(tmp_path, "--standalone") == 0
    voters = first_voters(tmp_path)
    assert voters is not None
    (voter,) = voters
    assert (voter.key.id, voter.key.directory_id) == (1, directory_id(tmp_path))
    assert (voter.endpoint.host, voter.endpoint.port) == ("localhost", 9093)
    assert parse_bootstrap((tmp_path / "data" / "bootstrap.checkpoint").read_bytes(), "")


def test_initial_controller_has_the_directory_that_it_is_named_with(tmp_path: Path) -> None:
    named = f"1@localhost:9093:{OWN},2@[::1]:9094:{OTHER}"
    assert run(tmp_path, "--initial-controllers", named) == 0
    voters = first_voters(tmp_path)
    assert voters is not None
    assert voters.ids == (1, 2)
    assert voters.voters[0].key.directory_id == directory_id(tmp_path)
    assert voters.voters[1].endpoint.host == "::1"


@pytest.mark.parametrize(
    "options",
    [("--no-initial-controllers",), ("--initial-controllers", f"2@localhost:9094:{OTHER}")],
)
def test_controller_that_joins_later_knows_no_voters(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    assert run(tmp_path, *options) == 0
    assert first_voters(tmp_path) is None


def test_broker_needs_no_beginning(tmp_path: Path) -> None:
    broker = {"process_roles": "broker", "listeners": "PLAINTEXT://localhost:9092"}
    assert run(tmp_path, **broker) == 0
    assert run(tmp_path, "--standalone", **broker) == 2


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({}, "--no-initial-controllers"),
        ({"process_roles": "broker", "listeners": "PLAINTEXT://localhost:9092"}, ""),
    ],
)
def test_a_node_that_joins_others_invents_no_cluster(
    changes: dict[str, str], option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*written(tmp_path, **changes), *filter(None, [option])]
    assert main(command) == 2
    assert "it joins a cluster, so give the id of that by --cluster-id" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
    assert main([*command, "--cluster-id", CLUSTER]) == 0
    assert main([*command, "--ignore-formatted"]) == 0, "its directory says it by now"


def test_a_first_controller_invents_one_and_says_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*written(tmp_path), "--standalone"]) == 0
    meta = read_meta_properties(str(tmp_path / "data"))
    assert meta is not None
    assert f"of cluster {meta.cluster_id}\n" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--standalone", "--no-initial-controllers"])
def test_static_voters_leave_nothing_to_say(option: str, tmp_path: Path) -> None:
    assert run(tmp_path, option, controller_quorum_voters="1@localhost:9093") == 2
    assert not (tmp_path / "data").exists()


def test_controller_without_voters_has_to_be_told_how_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 2
    assert "--standalone, --initial-controllers or --no-initial" in capsys.readouterr().err


def test_a_second_directory_gets_the_cluster_of_the_first(tmp_path: Path) -> None:
    assert run(tmp_path, "--standalone") == 0
    both = f"{tmp_path / 'data'},{tmp_path / 'second'}"
    config = tmp_path / "server.properties"
    config.write_text(config.read_text().replace(str(tmp_path / "data"), both))
    again = ["format", "--config", str(config), "--standalone", "--ignore-formatted"]
    assert main([*again, "--cluster-id", OWN]) == 1
    assert not (tmp_path / "second").exists()
    assert main(again) == 0
    meta = read_meta_properties(str(tmp_path / "second"))
    assert meta is not None
    assert meta.cluster_id == CLUSTER


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1", "is not id@host:port:directory-id"),
        ("a@localhost:9093:" + OWN, "is not id@host:port:directory-id"),
        ("1@localhost:9093", "a uuid has 22 characters"),
        ("1@localhost:9093:" + "A" * 22, "must not be zero"),
        (f"1@localhost:{OWN}", "is not host:port"),
        (f"1@h:1:{OWN},1@h:2:{OTHER}", "stands there twice"),
        (",", "names nobody"),
    ],
)
def test_initial_controllers_are_read_strictly(text: str, problem: str, tmp_path: Path) -> None:
    config: NodeConfig = node_config(properties(tmp_path))
    with pytest.raises(ConfigError, match=problem):
        initial_controllers(text, config)


def test_features_may_begin_at_other_levels(tmp_path: Path) -> None:
    names = ("eligible.leader.replicas", "group", "transaction")
    features = [f"{name}.version=0" for name in names]
    asked = [word for feature in features for word in ("--feature", feature)]
    assert run(tmp_path, "--standalone", *asked) == 0
    path = tmp_path / "data" / "bootstrap.checkpoint"
    (value,) = parse_bootstrap(path.read_bytes(), str(path))
    assert decode_record(value) == FeatureLevelRecord(name="metadata.version", feature_level=33)


def test_cluster_may_begin_as_an_older_release(tmp_path: Path) -> None:
    assert run(tmp_path, "--standalone", "--release-version", "4.3") == 0
    path = tmp_path / "data" / "bootstrap.checkpoint"
    first, *_ = parse_bootstrap(path.read_bytes(), str(path))
    assert decode_record(first) == FeatureLevelRecord(name="metadata.version", feature_level=30)


def test_unknown_release_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--standalone", "--release-version", "9.9") == 2
    assert "--release-version: 9.9 is no release that is known here" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("group.version", "say NAME=LEVEL"),
        ("group.version=-1", "say NAME=LEVEL"),
        ("kraft.version=1", "it is 1 where the voters live in the log"),
        ("share.version=1", "share.version 1: this release serves no share groups (KIP-932)"),
        ("metadata.version=99", "metadata.version 99: this release supports 7 to 33"),
    ],
)
def test_features_that_cannot_be_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], feature: str, words: str
) -> None:
    assert run(tmp_path, "--standalone", "--feature", feature) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_release_and_its_level_are_not_both_told(tmp_path: Path) -> None:
    options = ("--standalone", "--release-version", "4.3", "--feature", "metadata.version=33")
    assert run(tmp_path, *options) != 0
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ("--release-version", "3.4", "--add-scram", "SCRAM-SHA-256=[name=a,password=b]"),
            "UserScramCredentialRecord is not written at metadata.version 8",
        ),
        (
            ("--release-version", "3.8", "--standalone"),
            "kraft.version 1 needs metadata.version 21 or newer",
        ),
    ],
)
def test_a_beginning_that_no_controller_could_go_on_with_is_refused(
    options: tuple[str, ...],
    problem: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    voters = {} if "--standalone" in options else {"controller.quorum.voters": "1@localhost:9093"}
    assert run(tmp_path, *options, **voters) == 2
    assert problem in capsys.readouterr().err
    assert first_voters(tmp_path) is None
