"""The ledger: differences by role; nothing is counted twice, and nothing is made up."""

from quorumlab.compare.node_measurements import difference, goes_on, of_all_roles, total

ROLES = {1: "brokers", 2: "brokers", 101: "controllers", 102: "controllers"}


def test_differences_are_summed_by_role_and_what_has_not_moved_is_left_out() -> None:
    before = {1: {"zk.set": 5, "zk.get": 2}, 2: {"zk.set": 1}, 101: {"fsyncs": 10}}
    after = {1: {"zk.set": 8, "zk.get": 2}, 2: {"zk.set": 2}, 101: {"fsyncs": 12}}
    assert difference(before, after, roles=ROLES) == {
        "brokers": {"zk.set": 4},
        "controllers": {"fsyncs": 2},
    }


def test_node_that_is_gone_has_nothing_more_to_say() -> None:
    before = {1: {"zk.set": 5}, 2: {"zk.set": 1}}
    assert difference(before, {2: {"zk.set": 2}}, roles=ROLES) == {"brokers": {"zk.set": 1}}


def test_node_that_was_restarted_counts_from_nothing() -> None:
    before, after = {1: {"zk.set": 50}}, {1: {"zk.set": 8}}
    assert difference(before, after, roles=ROLES, restarted=(1,)) == {"brokers": {"zk.set": 8}}


def test_record_that_every_controller_has_is_one_record() -> None:
    before = {101: {"log.records": 10}, 102: {"log.records": 9}}
    after = {101: {"log.records": 111}, 102: {"log.records": 111}}
    assert difference(before, after, roles=ROLES) == {"controllers": {"log.records": 102}}


def test_total_takes_names_as_they_are() -> None:
    ledger = {"brokers": {"zk.set": 3, "zk.set.versioned": 3}, "controllers": {"zk.set": 1}}
    assert total(ledger, ["zk.set"]) == 4


def test_record_that_nodes_of_both_roles_have_is_one_record() -> None:
    ledger = {
        "brokers": {"log.records": 101, "fsyncs": 2},
        "controllers": {"log.records": 102, "fsyncs": 5},
    }
    assert of_all_roles(ledger) == {"log.records": 102, "fsyncs": 7}


def test_fetches_and_heartbeats_go_on_whatever_happens() -> None:
    assert goes_on("rpc.sent.Fetch")
    assert goes_on("rpc.bytes_sent")
    assert goes_on("zk.bytes_received")
    assert goes_on("rpc.bytes_sent.LeaderAndIsr")
    assert not goes_on("rpc.sent.LeaderAndIsr")
    assert not goes_on("zk.set")
