"""`users` and `acls`: what they ask of a cluster, for which something stands that only listens."""

import io
import sys
from types import TracebackType
from typing import Any, Self

import pytest

from quorumlab.cli import main
from quorumlab.verbs import acls, users
from wire.errors import ErrorCode
from wire.messages.acls import (
    AclCreationResult,
    AclDescription,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from wire.messages.scram_users import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from wire.security.scram import SCRAM_SHA_512

TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, WRITE, CREATE, DESCRIBE, ALL = 3, 4, 5, 8, 2
DENY, ALLOW = 2, 3
LITERAL, PREFIXED = 3, 4
ALICE = AclDescription(principal="User:alice", host="*", operation=READ, permission_type=ALLOW)


class Cluster:
    """A client, and the cluster behind it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.error = ErrorCode.NONE

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        pass

    def ask(self, request: Any, expected: type) -> Any:
        self.asked.append(request)
        if expected is CreateAclsResponse:
            result = AclCreationResult(error_code=self.error)
            return CreateAclsResponse(results=(result,) * len(request.creations))
        if expected is DescribeAclsResponse:
            found = DescribeAclsResource(resource_type=TOPIC, resource_name="t", acls=(ALICE,))
            return DescribeAclsResponse(resources=(found,))
        if expected is DeleteAclsResponse:
            gone = DeleteAclsMatchingAcl(
                principal="User:alice",
                host="*",
                operation=READ,
                permission_type=ALLOW,
                resource_type=TOPIC,
                resource_name="t",
            )
            return DeleteAclsResponse(
                filter_results=(DeleteAclsFilterResult(matching_acls=(gone,)),)
            )
        if expected is AlterUserScramCredentialsResponse:
            altered = AlterUserScramCredentialsResult(user="alice", error_code=self.error)
            return AlterUserScramCredentialsResponse(results=(altered,))
        info = CredentialInfo(mechanism=2, iterations=4096)
        known = DescribeUserScramCredentialsResult(user="alice", credential_infos=(info,))
        return DescribeUserScramCredentialsResponse(results=(known,))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    for module in (acls, users):
        monkeypatch.setattr(module, "connected", lambda _: made)
    return made


def run(line: str) -> int:
    return main(line.split())


def created(cluster: Cluster) -> set[tuple[object, ...]]:
    return {
        (each.resource_type, each.resource_name, each.principal, each.host, each.operation)
        for each in cluster.asked[0].creations
    }


def test_everybody_named_gets_every_operation_on_every_resource(cluster: Cluster) -> None:
    line = "acls add --allow-principal User:a --deny-principal User:CN=e,O=x --allow-host ::1"
    assert run(line + " --topic t --group g --operation describe") == 0
    assert created(cluster) == {
        (kind, name, *who, DESCRIBE)
        for kind, name in ((TOPIC, "t"), (GROUP, "g"))
        for who in (("User:a", "::1"), ("User:CN=e,O=x", "*"))
    }
    permissions = {each.principal: each.permission_type for each in cluster.asked[0].creations}
    assert permissions == {"User:a": ALLOW, "User:CN=e,O=x": DENY}


def test_clients_get_what_they_need(cluster: Cluster) -> None:
    line = "acls add --allow-principal User:a --producer --consumer --topic t --group g"
    assert run(line) == 0
    assert {row[:2] + row[4:] for row in created(cluster)} == {
        *((TOPIC, "t", operation) for operation in (DESCRIBE, WRITE, CREATE, READ)),
        (GROUP, "g", READ),
    }


def test_a_pattern_is_of_names_but_there_is_one_cluster(cluster: Cluster) -> None:
    line = "acls add --allow-principal User:a --topic t --cluster --resource-pattern-type prefixed"
    assert run(line) == 0
    patterns = {
        (each.resource_type, each.resource_name): each.resource_pattern_type
        for each in cluster.asked[0].creations
    }
    assert patterns == {(TOPIC, "t"): PREFIXED, (CLUSTER, "kafka-cluster"): LITERAL}
    assert {each.operation for each in cluster.asked[0].creations} == {ALL}


def test_entries_are_listed_and_deleted_by_what_is_named(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("acls list --topic t --resource-pattern-type match") == 0
    asked = cluster.asked[0]
    assert (asked.resource_type_filter, asked.resource_name_filter) == (TOPIC, "t")
    assert asked.pattern_type_filter == 2
    row = " ".join(capsys.readouterr().out.splitlines()[1].split())
    assert row == "topic t literal allow Read User:alice *"
    line = "acls delete --deny-principal User:a --operation Read --topic t"
    assert run(line) == 0
    (found,) = cluster.asked[1].filters
    assert (found.principal_filter, found.host_filter) == ("User:a", "*")
    assert (found.operation, found.permission_type) == (READ, DENY)
    assert run("acls delete --topic t") == 0
    (found,) = cluster.asked[2].filters
    assert (found.principal_filter, found.operation, found.permission_type) == (None, 1, 1)
    assert capsys.readouterr().out == "Deleted 1 entry.\n" * 2


def test_a_password_goes_out_salted_and_is_said_nowhere(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("pass word\nignored\n"))
    assert main(["users", "add", "alice"]) == 0
    (sent,) = cluster.asked[0].upsertions
    assert (sent.name, sent.mechanism, sent.iterations) == ("alice", 2, 4096)
    assert sent.salted_password == SCRAM_SHA_512.salted("pass word", sent.salt, 4096)
    assert "pass word" not in "".join(capsys.readouterr())


def test_a_password_on_the_command_line_is_noted(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["users", "add", "alice", "--password", "seen"]) == 0
    told = capsys.readouterr()
    assert "note: " in told.err
    assert "seen" not in told.err + told.out


def test_all_credentials_of_a_user_are_deleted_unless_one_is_named(cluster: Cluster) -> None:
    assert main(["users", "delete", "alice"]) == 0
    (deletion,) = cluster.asked[1].deletions
    assert (deletion.name, deletion.mechanism) == ("alice", 2)


def test_a_refusal_is_one_line(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert run("acls add --allow-principal User:a --topic t") == 1
    assert capsys.readouterr().err == "quorumlab: CLUSTER_AUTHORIZATION_FAILED\n"
