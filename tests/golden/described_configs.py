"""How a real Kafka describes the configs of its resources: names, types, defaults, synonyms.

Values that somebody has set, and what the keys are for, are left out.
"""

from __future__ import annotations

from tests.golden.rawkafka import Connection, In, Out

DESCRIBE_CONFIGS, VERSION = 32, 4
DEFAULT_CONFIG = 5
RESOURCES = {"topic": (2, "w"), "broker": (4, "1"), "client-metrics": (16, "m"), "group": (32, "g")}

Described = dict[str, object]


def capture(port: int) -> dict[str, list[Described]]:
    """By kind of resource, ordered by name. The topic must exist."""
    with Connection(port) as connection:
        return {kind: describe(connection, *resource) for kind, resource in RESOURCES.items()}


def describe(connection: Connection, resource_type: int, name: str) -> list[Described]:
    body = Out()
    body.array([name], lambda out, n: out.i8(resource_type).string(n).array(None, Out.raw).tags())
    body.flag(True).flag(False).tags()
    answer = connection.call(DESCRIBE_CONFIGS, VERSION, body)
    answer.i32()
    (found,) = answer.array(read_result)
    return sorted(found, key=lambda config: str(config["name"]))


def read_result(answer: In) -> list[Described]:
    assert answer.i16() == 0, answer.string()
    answer.string(), answer.i8(), answer.string()
    configs = answer.array(read_config)
    answer.tags()
    return configs


def read_config(answer: In) -> Described:
    name, value, read_only = answer.string(), answer.string(), answer.flag()
    source, sensitive = answer.i8(), answer.flag()
    synonyms = answer.array(lambda r: (r.string(), r.string(), r.i8(), r.tags())[:3])
    kind = answer.i8()
    answer.string(), answer.tags()
    described: Described = {"name": name, "type": kind}
    if source == DEFAULT_CONFIG:
        described["default"] = value
        described["synonyms"] = [[key, text] for key, text, _ in synonyms]
    if read_only:
        described["read_only"] = True
    if sensitive:
        described["sensitive"] = True
    return described
