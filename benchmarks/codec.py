"""Encoding and decoding messages, headers included: processor time, the best of some rounds."""

import json
from collections.abc import Callable
from time import process_time
from uuid import UUID

from wire.apis import decode_request, decode_response, encode_request, encode_response
from wire.messages.fetching import (
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from wire.messages.producing import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from wire.messages.quorum_epochs import (
    VotePartition,
    VotePartitionResult,
    VoteRequest,
    VoteResponse,
    VoteTopic,
    VoteTopicResult,
)

ROUNDS = 9
TOPIC_ID, DIRECTORY_ID = UUID(int=0xBEE), UUID(int=0xCAFE)


def measure(name: str, run: Callable[[], object], repeat: int = 1000) -> None:
    run()
    best = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        for _ in range(repeat):
            run()
        best = min(best, (process_time() - started) / repeat)
    line = {"name": f"codec {name}", "value": round(best * 1e6, 2), "unit": "us", "rounds": ROUNDS}
    print(json.dumps(line), flush=True)


def both_ways(name: str, version: int, request: object, response: object, repeat: int) -> None:
    asked = b"".join(encode_request(request, version, 1, "benchmark"))
    key = decode_request(asked).api_key
    answered = b"".join(encode_response(response, key, version, 1))
    measure(
        f"{name} request encode", lambda: encode_request(request, version, 1, "benchmark"), repeat
    )
    measure(f"{name} request decode", lambda: decode_request(asked), repeat)
    measure(f"{name} response encode", lambda: encode_response(response, key, version, 1), repeat)
    measure(f"{name} response decode", lambda: decode_response(answered, key, version), repeat)


def fetches(partition_count: int, records: bytes) -> tuple[object, object]:
    asked = tuple(
        FetchPartition(
            partition=index, current_leader_epoch=3, fetch_offset=100, last_fetched_epoch=3
        )
        for index in range(partition_count)
    )
    answered = tuple(
        FetchedPartition(partition_index=index, high_watermark=100, records=records)
        for index in range(partition_count)
    )
    return (
        FetchRequest(
            max_wait_ms=500,
            replica_state=ReplicaState(replica_id=1),
            topics=(FetchTopic(topic_id=TOPIC_ID, partitions=asked),),
        ),
        FetchResponse(responses=(FetchedTopic(topic_id=TOPIC_ID, partitions=answered),)),
    )


def metadatas(partition_count: int) -> tuple[object, object]:
    partitions = tuple(
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            leader_epoch=1,
            replica_nodes=(index % 3, (index + 1) % 3, (index + 2) % 3),
            isr_nodes=(index % 3, (index + 1) % 3, (index + 2) % 3),
        )
        for index in range(partition_count)
    )
    brokers = tuple(
        MetadataResponseBroker(node_id=node_id, host="localhost", port=9092) for node_id in range(3)
    )
    topic = MetadataResponseTopic(name="topic", topic_id=TOPIC_ID, partitions=partitions)
    return MetadataRequest(), MetadataResponse(brokers=brokers, topics=(topic,))


def produces() -> tuple[object, object]:
    sent = PartitionProduceData(index=0, records=bytes(1024))
    stored = PartitionProduceResponse(index=0, base_offset=100)
    return (
        ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=(TopicProduceData(name="topic", partition_data=(sent,)),),
        ),
        ProduceResponse(
            responses=(TopicProduceResponse(name="topic", partition_responses=(stored,)),)
        ),
    )


def votes() -> tuple[object, object]:
    asked = VotePartition(
        partition_index=0,
        replica_epoch=7,
        replica_id=1,
        replica_directory_id=DIRECTORY_ID,
        last_offset_epoch=6,
        last_offset=100,
    )
    answered = VotePartitionResult(partition_index=0, leader_epoch=7, vote_granted=True)
    topic = "__cluster_metadata"
    return (
        VoteRequest(topics=(VoteTopic(topic_name=topic, partitions=(asked,)),)),
        VoteResponse(topics=(VoteTopicResult(topic_name=topic, partitions=(answered,)),)),
    )


def main() -> None:
    both_ways("vote", 2, *votes(), repeat=1000)
    both_ways("produce 1 KiB", 9, *produces(), repeat=1000)
    both_ways("fetch 1 partition", 17, *fetches(1, bytes(1024)), repeat=1000)
    both_ways("fetch 1000 partitions", 17, *fetches(1000, b""), repeat=5)
    both_ways("metadata 1 partition", 12, *metadatas(1), repeat=1000)
    both_ways("metadata 1000 partitions", 12, *metadatas(1000), repeat=5)
    both_ways("metadata 10000 partitions", 12, *metadatas(10_000), repeat=1)
