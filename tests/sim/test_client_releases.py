"""Clients of older software: brokers are told what their requests lack, and answer in kind."""

import pytest

from jepsen_like.checkers.verdict import Outcome
from jepsen_like.clients.steps import Ask, Pause, Steps
from jepsen_like.sim.chaos.plan import Plan
from jepsen_like.sim.chaos.workload_run import run_plan
from jepsen_like.sim.world import calls
from jepsen_like.sim.world.client_releases import NEWEST, OLDER, ClientRelease, spoken
from jepsen_like.sim.world.codec import InVersion, answer_in, request_in
from wire.api_table import APIS
from wire.capabilities import Capability, Lacking, lacking
from wire.errors import ErrorCode
from wire.messages.group_offsets import OffsetFetchResponse, OffsetFetchResponseGroup
from wire.messages.groups import SyncGroupRequest
from wire.messages.metadata import DescribeClusterRequest

OLDEST = OLDER[-1]
SYNC = SyncGroupRequest(
    group_id="g", generation_id=1, member_id="m", protocol_type="consumer", protocol_name="range"
)


@pytest.mark.parametrize("release", OLDER, ids=lambda release: release.name)
def test_every_release_knows_versions_that_are_served(release: ClientRelease) -> None:
    served = {api.name: api.broker for api in APIS if api.broker is not None}
    for name, version in release.newest.items():
        assert version in served[name], name


def test_newest_release_says_a_request_as_it_is() -> None:
    assert NEWEST.says(SYNC) is SYNC


def test_older_release_says_what_its_version_holds() -> None:
    said = OLDEST.says(SYNC)
    assert isinstance(said, InVersion)
    heard = request_in(*said)
    assert heard.member_id == "m"
    assert heard.protocol_name is None
    assert lacking(SyncGroupRequest, said.version) == {Capability.NAMES_ITS_PROTOCOL}


def test_error_of_a_group_is_lost_on_a_version_that_has_no_place_for_it() -> None:
    refused = OffsetFetchResponseGroup(
        group_id="g", topics=(), error_code=ErrorCode.NOT_COORDINATOR
    )
    told = answer_in(OffsetFetchResponse(groups=(refused,)), OLDEST.newest["offset_fetch"])
    assert told.groups[0].error_code is ErrorCode.NONE


def test_api_that_a_release_does_not_name_is_said_in_the_newest_version() -> None:
    body = DescribeClusterRequest()
    assert OLDEST.says(body) is body


def test_steps_are_the_same_but_for_how_they_are_said() -> None:
    def steps() -> Steps[object]:
        yield Pause(5)
        told = yield Ask(node=1, body=SYNC, timeout_ms=10)
        return told

    older = spoken(steps(), OLDEST)
    assert next(older) == Pause(5)
    assert older.send(None) == Ask(node=1, body=InVersion(SYNC, 1), timeout_ms=10)
    with pytest.raises(StopIteration, match="answer"):
        older.send("answer")


def test_brokers_are_told_what_the_clients_of_a_workload_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: set[Capability] = set()

    def noted(kind: type, version: int) -> Lacking:
        found = lacking(kind, version)
        told.update(found)
        return found

    monkeypatch.setattr(calls, "lacking", noted)
    outcome = run_plan(Plan(seed=2, workload="kafka", seconds=4))
    assert outcome.verdict.outcome is Outcome.VALID, outcome.verdict
    assert told >= {
        Capability.JOINS_AGAIN_WITH_ITS_ID,
        Capability.SKIPS_ASSIGNMENT,
        Capability.NAMES_ITS_PROTOCOL,
        Capability.TAKES_ERROR_OF_GROUP,
    }
