"""What a node has done since it began, in numbers that do not depend on the machine: `/v1/ledger`.

    zk.<operation>        asked of ZooKeeper: see `wire.zk.accounting`
    zk.watches_armed      left at a place where this client had none
    zk.watches_fired      events for which it waited
    rpc.sent.<API>        requests to other nodes
    rpc.received.<API>    requests of nodes and clients
    rpc.bytes_sent        of frames, in requests and in answers; also by API, behind another dot
    rpc.bytes_received
    fsyncs                of files and directories
    log.records           appended to the metadata log, control records too

What is asked over HTTP is not in it.
"""

from collections.abc import Mapping

from quorum.node.driver_counts import DriverCounts
from quorumlab.node_parts import NodeParts
from wire.api_table import api_by_key, camel_case

__all__ = ["ledger", "rpc_counts"]


def ledger(node: NodeParts) -> dict[str, int]:
    counts = node.driver.counts
    return {
        **({} if node.zk is None else node.zk.counts()),
        **rpc_counts(counts),
        "fsyncs": node.storage.fsyncs,
        "log.records": 0 if node.zk is not None else node.raft.replica.log.appended_records,
    }


def rpc_counts(counts: DriverCounts) -> dict[str, int]:
    traffic = counts.traffic
    return {
        **{f"rpc.sent.{camel_case(api)}": count for api, count in counts.sent.items()},
        **{f"rpc.received.{camel_case(api)}": of.received for api, of in counts.apis.items()},
        **_bytes("rpc.bytes_sent", traffic.sent_bytes),
        **_bytes("rpc.bytes_received", traffic.received_bytes),
    }


def _bytes(name: str, by_key: Mapping[int, int]) -> dict[str, int]:
    by_api = {f"{name}.{_title(key)}": count for key, count in by_key.items()}
    return {name: sum(by_key.values()), **by_api}


def _title(api_key: int) -> str:
    api = api_by_key(api_key)
    assert api is not None, api_key  # a frame of another is refused before it is counted
    return camel_case(api.name)
