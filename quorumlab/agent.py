"""The agent serves tests that drive a node over HTTP, beside what Kafka's protocol has.

GET  /v1/agent/read-committed?topic=T&config=K
     200 {"value", "offset", "epoch"}: what the topic's configuration says, linearizable
     409 {"error", "leader_id"}: this is not the active controller
     503 {"error"}: no majority has confirmed in time that it is
     Only controllers with quorumlab.confirmed.reads.enable=true answer.

POST /v1/agent/register {"f": "read" | "write" | "cas", "key", "value"}
     200 {"outcome": "ok" | "fail" | "info", "value" | "seen" | "error"}
     The value of a cas is [old, new]. Only nodes with quorumlab.application=register have it.
"""

import json
from collections.abc import Mapping
from typing import Any

from controller.committed_reads import ReadCommittedRequest, ReadCommittedResponse
from quorum.node.register import RegisterRequest, RegisterResponse
from quorumlab.node_parts import NodeParts
from wire.errors import ErrorCode
from wire.http import Answer, PostRoute, Route

__all__ = ["parse_register", "posts", "routes"]

_KEY_CHARACTERS_MAX = 200


def routes(node: NodeParts) -> Mapping[str, Route]:
    return {"/v1/agent/read-committed": lambda query: _read_committed(node, query)}


def posts(node: NodeParts) -> Mapping[str, PostRoute]:
    return {"/v1/agent/register": lambda body: _register(node, body)}


async def _read_committed(node: NodeParts, query: Mapping[str, str]) -> Answer:
    if node.controller is None:
        return Answer.json({"error": "this node is not a controller"}, 404)
    if not node.config.flag("quorumlab.confirmed.reads.enable"):
        error = "this node serves no such reads: set quorumlab.confirmed.reads.enable=true"
        return Answer.json({"error": error}, 404)
    if not query.get("topic") or not query.get("config"):
        return Answer.json({"error": "say which: ?topic=T&config=K"}, 400)
    asked = ReadCommittedRequest(topic=query["topic"], config=query["config"])
    told = await node.driver.ask(asked)
    if told is None:
        return Answer.json({"error": "this node's disk has failed"}, 503)
    assert isinstance(told, ReadCommittedResponse), told
    match told.error:
        case ErrorCode.NONE:
            return Answer.json({"value": told.value, "offset": told.offset, "epoch": told.epoch})
        case ErrorCode.NOT_CONTROLLER:
            error = "this node is not the active controller"
            return Answer.json({"error": error, "leader_id": told.leader_id}, 409)
        case _:
            return Answer.json(
                {"error": "no majority has confirmed in time that this node leads"}, 503
            )


async def _register(node: NodeParts, body: bytes) -> Answer:
    if node.register is None:
        return Answer.json(
            {"error": "this node has no register: set quorumlab.application=register"}, 404
        )
    try:
        asked = parse_register(body)
    except ValueError as error:
        return Answer.json({"error": str(error)}, 400)
    told = await node.driver.ask(asked)
    if told is None:
        return Answer.json({"outcome": "info", "error": "this node's disk has failed"})
    assert isinstance(told, RegisterResponse), told
    return Answer.json(_described(asked, told))


def parse_register(body: bytes) -> RegisterRequest:
    """Raises ValueError with what is wrong."""
    try:
        asked = json.loads(body)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(asked, dict):
        raise ValueError('not an object like {"f": "write", "key": "x", "value": 1}')
    f, key, value = asked.get("f"), asked.get("key"), asked.get("value")
    if not isinstance(key, str) or not 0 < len(key) <= _KEY_CHARACTERS_MAX:
        raise ValueError(f"key is {key!r:.100}, no text of 1 to {_KEY_CHARACTERS_MAX} characters")
    if f == "cas":
        if not isinstance(value, list) or len(value) != 2 or not all(map(_is_value, value)):
            raise ValueError(f"the value of a cas is {value!r:.100}, not [old, new]")
        return RegisterRequest(f="cas", key=key, old=value[0], value=value[1])
    if not _is_value(value):
        raise ValueError(f"value is {value!r:.100}, neither a whole number nor null")
    return RegisterRequest(f=str(f), key=key, value=value)


def _is_value(value: object) -> bool:
    return value is None or (type(value) is int and abs(value) < 1 << 63)


def _described(asked: RegisterRequest, told: RegisterResponse) -> dict[str, Any]:
    described: dict[str, Any] = {"outcome": told.outcome}
    if asked.f == "read" and told.outcome == "ok":
        described["value"] = told.value
    if told.has_seen:
        described["seen"] = told.seen
    if told.error is not None:
        described |= {"error": told.error, "leader_id": told.leader_id}
    return described
