"""The run: both sides are brought to the same state, and asked the same, one by one."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.differential import (
    data_requests,
    group_requests,
    quorum_requests,
    settings_requests,
    topic_requests,
    transaction_requests,
)
from tests.differential.comparing import Difference, Twins, differences
from tests.differential.drawing import (
    PASSING,
    TOPICS,
    TRANSACTIONAL_IDS,
    Both,
    Draw,
    Known,
    Producer,
    resolved,
)
from tests.differential.known import Explained, rows
from tests.differential.plain import decode_response, encode_request, has_flexible_header
from tests.differential.sides import BROKER, CONTROLLER, Closed, Side, Silent
from wire.api_table import APIS, Api, ListenerKind

__all__ = ["OF_THE_CONNECTION", "Exchange", "Run", "kinds"]

GENERATORS: dict[str, Callable[[Draw], dict[str, Any]]] = {
    **data_requests.REQUESTS,
    **group_requests.REQUESTS,
    **quorum_requests.REQUESTS,
    **settings_requests.REQUESTS,
    **topic_requests.REQUESTS,
    **transaction_requests.REQUESTS,
}
_LISTENERS = {BROKER: ListenerKind.BROKER, CONTROLLER: ListenerKind.CONTROLLER}
_BY_NAME = {api.name: api for api in APIS}
# They belong to the connection, not to who asks: `tests/wire/security` asks them.
OF_THE_CONNECTION = ("sasl_handshake", "sasl_authenticate")

# Those with the most ways to be wrong come more often.
WEIGHTS = {"produce": 8, "fetch": 5, "list_offsets": 4, "join_group": 4, "offset_commit": 3}
WEIGHTS |= {"create_topics": 3, "incremental_alter_configs": 4, "metadata": 2, "sync_group": 3}
WEIGHTS |= {"init_producer_id": 3, "add_partitions_to_txn": 3, "end_txn": 4, "txn_offset_commit": 3}

# Asked again when the answers differ: a node learns a little later of what a controller has taken.
READS = frozenset(name for name in GENERATORS if name.startswith(("describe_", "list_"))) | {
    "metadata",
    "offset_fetch",
    "api_versions",
    "find_coordinator",
    "offset_for_leader_epoch",
}
AGAIN_SECONDS = 1.0
STEP_SECONDS = 0.03
LOAD_SECONDS = 20.0
COORDINATOR_ERRORS = range(14, 17)  # it loads, is not available, or is not here
CONCURRENT_TRANSACTIONS = 51
CLOSED, SILENT, NOTHING = "(the connection is closed)", "(no answer)", "(none is due)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and both answers: bodies, or what happened instead."""

    number: int
    api: Api
    version: int
    listener: str
    body: Any  # with Both where the sides were told different things
    ours: Any
    kafka: Any
    differences: list[Difference]
    how: str = ""  # something about its bytes, if they are not just the body's

    def __str__(self) -> str:
        how = f", {self.how}" if self.how else ""
        return (
            f"request {self.number}: {self.api.title} {self.version} to the {self.listener}{how}: "
            f"{brief(resolved(self.body, 'kafka'))}"
        )


def brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 1500 else f"{text[:1400]}... ({len(text)} characters)"


def _is_loading(answer: Any) -> bool:
    """Whether nothing was done yet: a coordinator takes a while after the start."""
    match answer:
        case dict():
            if answer.get("error_code") in COORDINATOR_ERRORS:
                return True
            return any(_is_loading(value) for value in answer.values())
        case list():
            return any(_is_loading(element) for element in answer)
        case _:
            return False


def _compared(ours: Any, kafka: Any, twins: Twins) -> list[Difference]:
    """An answer and no answer are one difference."""
    if isinstance(ours, dict) and isinstance(kafka, dict):
        return differences(ours, kafka, twins)
    told = [brief(answer) if isinstance(answer, dict) else answer for answer in (ours, kafka)]
    return [] if ours == kafka else [Difference(field="", at="", ours=told[0], kafka=told[1])]


def kinds() -> list[tuple[str, str]]:
    """Every API with every listener that serves it, some of them several times."""
    return [
        (api.name, listener)
        for api in APIS
        for listener, kind in _LISTENERS.items()
        if api.served(kind) is not None and api.name not in OF_THE_CONNECTION
        for _ in range(WEIGHTS.get(api.name, 1) if listener == BROKER else 1)
    ]


@dataclass(slots=True)
class Run:
    """One seed. Iterate over `exchanges`; it takes a fresh pair of nodes."""

    seed: int
    ours: Side
    kafka: Side
    known: Known = field(default_factory=Known)
    twins: Twins = field(default_factory=Twins)
    explained: Explained = field(default_factory=lambda: Explained(rows()))

    def __post_init__(self) -> None:
        self.known.cluster_id = self.ours.cluster_id
        self.known.log_dir = Both(*(str(side.node.data) for side in self._sides()))
        self.twins.places = self._without_places
        self.twins.ports = {
            side.name: {side.port(BROKER): "BROKER", side.port(CONTROLLER): "CONTROLLER"}
            for side in self._sides()
        }

    def exchanges(self, count: int) -> Iterator[Exchange]:
        """The preparations, then so many generated requests."""
        number = 0
        for name, version, body in preparations(Draw(Random(0), self.known)):
            number -= 1
            yield self._settled(self._exchange(number, name, version, BROKER, body))
        order: list[tuple[str, str]] = []
        for number in range(1, count + 1):
            random = Random(f"{self.seed}-{number}")
            if not order:
                order = kinds()
                random.shuffle(order)
            name, listener = order.pop()
            yield self._settled(self._generated(number, name, listener, random))

    def unexplained(self, exchange: Exchange) -> list[Difference]:
        """Its differences that are in no row of the list."""
        text = str(exchange)
        row_of = self.explained.row_of
        return [d for d in exchange.differences if row_of(exchange.api.title, text, d) is None]

    def judged(self, exchange: Exchange) -> list[str]:
        """What differs and is not known, in lines; what is known is counted for its row."""
        text, lines = str(exchange), []
        for found in exchange.differences:
            row = self.explained.row_of(exchange.api.title, text, found)
            if row is not None:
                self.explained.count(row)
            else:
                lines.append(f"    {found}")
        return [text, *lines] if lines else []

    def _sides(self) -> tuple[Side, Side]:
        return self.ours, self.kafka

    def _without_places(self, text: str, side: str) -> str:
        asked = self.ours if side == "ours" else self.kafka
        text = text.replace(str(asked.node.data), "DATA").replace(str(asked.node.path), "PATH")
        for listener in (BROKER, CONTROLLER):
            text = text.replace(f":{asked.port(listener)}", f":{listener.upper()}")
        return text

    # --- one exchange -------------------------------------------------------------------------

    def _generated(self, number: int, name: str, listener: str, random: Random) -> Exchange:
        served = _BY_NAME[name].served(_LISTENERS[listener])
        assert served is not None, (name, listener)
        draw = Draw(random, self.known, listener=listener)
        draw.version = draw.served(served)
        body = GENERATORS[name](draw)
        spoil, how = _spoiling(draw, name)
        if draw.repeats:
            how = f"naming something twice, {how}".rstrip(", ")
        return self._exchange(number, name, draw.version, listener, body, spoil=spoil, how=how)

    def _exchange(
        self,
        number: int,
        name: str,
        version: int,
        listener: str,
        body: Any,
        *,
        spoil: "Spoil | None" = None,
        how: str = "",
    ) -> Exchange:
        api = _BY_NAME[name]
        deadline = time.monotonic() + AGAIN_SECONDS
        while True:
            ours, kafka = self._ask(api, version, listener, body, spoil)
            exchange = Exchange(
                number=number, api=api, version=version, listener=listener, body=body,
                ours=ours, kafka=kafka, differences=_compared(ours, kafka, self.twins), how=how,
            )  # fmt: skip
            is_late = time.monotonic() > deadline + (LOAD_SECONDS if number < 0 else 0)
            is_loading = _is_loading([ours, kafka])
            may_ask_again = name in READS or is_loading
            is_prepared = number >= 0 or not is_loading
            if is_late or (is_prepared and not (may_ask_again and self.unexplained(exchange))):
                return exchange
            time.sleep(STEP_SECONDS)

    def _ask(
        self, api: Api, version: int, listener: str, body: Any, spoil: "Spoil | None"
    ) -> tuple[Any, Any]:
        """Both at once, then both answers."""
        flexible = has_flexible_header(api.name, version)
        sent_version = version
        for side in self._sides():
            content = encode_request(api.name, version, resolved(body, side.name))
            if spoil is not None:
                content, sent_version = spoil(content), spoil.version(version)
            side.send(listener, api.key, sent_version, content, flexible)
        silent = api.name == "produce" and body["acks"] == 0
        ours, kafka = (self._answer(side, api, version, listener, silent) for side in self._sides())
        if CLOSED in (ours, kafka):  # the other one may be about to
            for side in self._sides():
                side.hang_up(listener)
        return ours, kafka

    def _answer(self, side: Side, api: Api, version: int, listener: str, silent: bool) -> Any:
        if silent:
            return NOTHING
        try:
            frame = side.receive(listener)
        except Closed:
            return CLOSED
        except Silent:
            return SILENT
        try:
            return decode_response(api.key, version, frame)
        except ValueError:  # an answer to a version that it does not serve is in the oldest
            return decode_response(api.key, 0, frame)

    # --- what is learnt, and waited for -------------------------------------------------------

    def _settled(self, exchange: Exchange) -> Exchange:
        """After what may have changed the metadata: until both sides show the same topics."""
        self._learn(exchange)
        if exchange.api.name in ("create_topics", "delete_topics", "create_partitions"):
            shown = self._exchange(exchange.number, "metadata", 12, BROKER, {"topics": None})
            self._learn(shown)
            self._wait_for_leaders(shown)
        if exchange.api.name in ("init_producer_id", "end_txn"):
            self._wait_for_markers(exchange)
        return exchange

    def _wait_for_markers(self, exchange: Exchange) -> None:
        """A transaction that is ended has its markers a little later: what follows is behind."""
        name = exchange.body["transactional_id"]
        answers = exchange.ours, exchange.kafka
        ended = (0, CONCURRENT_TRANSACTIONS)
        if not name or not any(
            isinstance(answer, dict) and answer.get("error_code") in ended for answer in answers
        ):
            return
        body = {"transactional_ids": [name]}
        deadline = time.monotonic() + AGAIN_SECONDS
        while time.monotonic() < deadline:
            shown = self._exchange(exchange.number, "describe_transactions", 0, BROKER, body)
            if "Prepare" not in f"{shown.ours}{shown.kafka}":
                return
            time.sleep(STEP_SECONDS)

    def _wait_for_leaders(self, shown: Exchange) -> None:
        """A leader is known a little before it leads."""
        if not isinstance(shown.kafka, dict):
            return
        topics = [
            {"name": topic["name"], "partitions": [
                {"partition_index": row["partition_index"]} for row in topic["partitions"]
            ]}
            for topic in shown.kafka["topics"]
        ]  # fmt: skip
        self._exchange(shown.number, "list_offsets", 7, BROKER, {"topics": topics})

    def _learn(self, exchange: Exchange) -> None:
        ours, kafka = exchange.ours, exchange.kafka
        if not isinstance(ours, dict) or not isinstance(kafka, dict):
            return
        match exchange.api.name:
            case "metadata":
                self._learn_topics(ours, kafka)
            case "join_group":
                self._learn_member(exchange)
            case "init_producer_id" if (ours["error_code"], kafka["error_code"]) == (0, 0):
                producers = Both(ours["producer_id"], kafka["producer_id"])
                if exchange.body["transactional_id"]:
                    self._learn_transaction(exchange)
                elif len(self.known.producers) < 3:
                    self.known.producers.append(producers)
            case "end_txn" if kafka.get("producer_id", -1) >= 0:
                self._learn_transaction(exchange)
            case "fetch" if all(each.get("session_id", 0) > 0 for each in (ours, kafka)):
                sessions = Both(ours["session_id"], kafka["session_id"])
                if sessions not in self.known.sessions:
                    self.known.sessions = [*self.known.sessions[-2:], sessions]

    def _learn_transaction(self, exchange: Exchange) -> None:
        """Who the producer is from now on."""
        ids = Both(exchange.ours.get("producer_id", -1), exchange.kafka["producer_id"])
        name, epoch = exchange.body["transactional_id"], exchange.kafka["producer_epoch"]
        self.known.transactions[name] = Producer(ids, epoch)

    def _learn_topics(self, ours: dict[str, Any], kafka: dict[str, Any]) -> None:
        theirs = {topic["name"]: topic.get("topic_id") for topic in kafka["topics"]}
        for topic in ours["topics"]:
            name, id_ = topic["name"], topic.get("topic_id")
            if id_ is not None and theirs.get(name) is not None and name is not None:
                self.known.topics[name] = Both(id_, theirs[name])

    def _learn_member(self, exchange: Exchange) -> None:
        group, ours, kafka = exchange.body["group_id"], exchange.ours, exchange.kafka
        if not ours["member_id"] or not kafka["member_id"]:
            return
        member = Both(ours["member_id"], kafka["member_id"])
        if isinstance(ours["member_id"], str) and "-" in ours["member_id"]:
            members = [m for m in self.known.members.get(group, []) if m != member]
            self.known.members[group] = [*members[-2:], member]
        if kafka["error_code"] == 0:
            self.known.generations[group] = kafka["generation_id"]


@dataclass(frozen=True, slots=True)
class Spoil:
    """How the bytes of a request are made wrong."""

    cut: int = 0
    tail: bytes = b""
    versions_more: int = 0

    def __call__(self, content: bytes) -> bytes:
        return content[: len(content) - self.cut] + self.tail

    def version(self, version: int) -> int:
        return version + self.versions_more


def _spoiling(draw: Draw, name: str) -> tuple[Spoil | None, str]:
    """Now and then: the end is missing, something follows it, or no such version is served."""
    if not draw.chance(5):
        return None, ""
    if name == "api_versions":
        draw.version = 4  # its header is that of newer versions, too
        return Spoil(versions_more=100), "in a version that is not served"
    return draw.pick(
        (Spoil(cut=1), "without its last byte"),
        (Spoil(versions_more=100), "in a version that is not served"),
    )


NEW_PRODUCER = {
    "transactional_id": None,
    "transaction_timeout_ms": 60_000,
    "producer_id": -1,
    "producer_epoch": -1,
}


def preparations(draw: Draw) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """What brings both to the same state: API, version, body."""
    yield "create_topics", 7, {"topics": [_new_topic(name) for name in TOPICS], "timeout_ms": 9000}
    yield "create_topics", 7, {"topics": [_new_topic(PASSING[0])], "timeout_ms": 9000}
    yield "init_producer_id", 4, NEW_PRODUCER
    for name in ("alpha", "beta", "gamma", "compacted", "gzipped", "stamped"):
        for index in range(TOPICS[name]):
            rows = [{"index": index, "records": data_requests.plain_batch(3, sequence=index)}]
            topics = [{"name": name, "partition_data": rows}]
            yield "produce", 9, {"acks": -1, "timeout_ms": 5000, "topic_data": topics}
    yield "find_coordinator", 3, {"key": "idle", "key_type": 0}
    yield from _of_transactions()
    yield from _of_groups()
    yield from _of_settings()


def _of_transactions() -> Iterator[tuple[str, int, dict[str, Any]]]:
    """A coordinator that loads takes no new producer, and one that is asked twice is another."""
    for name in TRANSACTIONAL_IDS:
        yield "find_coordinator", 3, {"key": name, "key_type": 1}
        yield "describe_transactions", 0, {"transactional_ids": [name]}
        new = {"transactional_id": name, "transaction_timeout_ms": 900_000}
        yield "init_producer_id", 4, NEW_PRODUCER | new


def _of_groups() -> Iterator[tuple[str, int, dict[str, Any]]]:
    yield "metadata", 12, {"topics": None}
    rows = [{"partition_index": 0, "committed_offset": 2, "committed_metadata": "m",
             "committed_leader_epoch": 0}]  # fmt: skip
    yield "offset_commit", 8, {
        "group_id": "idle", "generation_id_or_member_epoch": -1, "member_id": "",
        "topics": [{"name": "alpha", "partitions": rows}, {"name": "beta", "partitions": rows}],
    }  # fmt: skip


def _of_settings() -> Iterator[tuple[str, int, dict[str, Any]]]:
    yield "create_acls", 3, {"creations": [
        {"resource_type": 2, "resource_name": "alpha", "resource_pattern_type": 3,
         "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3},
    ]}  # fmt: skip
    yield "alter_user_scram_credentials", 0, {"deletions": [], "upsertions": [
        {"name": "u1", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"},
    ]}  # fmt: skip
    yield "alter_client_quotas", 1, {"entries": [
        {"entity": [{"entity_type": "user", "entity_name": "u1"}],
         "ops": [{"key": "producer_byte_rate", "value": 1e6, "remove": False}]},
    ], "validate_only": False}  # fmt: skip


_CONFIGS = {
    "compacted": {"cleanup.policy": "compact"},
    "gzipped": {"compression.type": "gzip"},
    "narrow": {"max.message.bytes": "150"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "careful": {"min.insync.replicas": "2"},
}


def _new_topic(name: str) -> dict[str, Any]:
    configs = _CONFIGS.get(name, {})
    return {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            {"partition_index": index, "broker_ids": [1]} for index in range(TOPICS.get(name, 1))
        ],
        "configs": [{"name": key, "value": value} for key, value in configs.items()],
    }
