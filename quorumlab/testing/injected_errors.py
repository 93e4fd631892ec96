"""Errors that are put into answers to clients, by a proxy in front of each broker.

    cluster.inject("NOT_LEADER_OR_FOLLOWER", api="Produce", topic="orders").once()

Counts are of requests: one request that fails in three partitions counts once. Requests of brokers
pass untouched, and so does a Produce request with acks=0, which nobody answers.

Newer versions give topics by id. The names of ids are learnt from the Metadata answers that pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, Self
from uuid import UUID

from jepsen_like.faults.message_rules import api_key_of
from jepsen_like.faults.participants import CLIENTS
from jepsen_like.real.layout import Link
from jepsen_like.real.tampering import Exchange
from quorumlab.testing.error_places import (
    AFTERWARDS,
    PLACES,
    Place,
    Wanted,
    asked_in,
    refused,
    spoiled,
    topic_name,
    without,
)
from wire.api_table import api_by_key, camel_case
from wire.apis import (
    DecodedRequest,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from wire.errors import ErrorCode
from wire.varint import Malformed
from wire.writing import CannotExpress

__all__ = ["CannotInject", "ErrorRule", "InjectedErrors"]

_METADATA_KEY = 3
_Unreadable = (Malformed, CannotExpress, UnsupportedVersion)


class CannotInject(ValueError):
    """Names what is unknown, and what is known."""


def _one_of(known: Iterable[str], what: str, wanted: str) -> str:
    names = {name.replace("_", "").lower(): name for name in known}
    folded = wanted.replace("_", "").lower()
    if folded in names:
        return names[folded]
    near = get_close_matches(folded, names, n=1)
    known_ones = f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(known)}"
    raise CannotInject(f"no {what} {wanted!r} can be injected: {known_ones}")


@dataclass(eq=False, slots=True)
class ErrorRule:
    """An error that is armed by `once`, `times` or `always`, each of which returns the rule."""

    error: ErrorCode
    api: str  # as in `PLACES`
    topic: str | None
    limit: int | None = 0  # requests that shall fail; None: all. 0: it is not armed yet
    fired: int = 0  # requests that have failed
    why_not: str = ""  # why the last message that matched could not be changed
    is_over: bool = False

    def once(self) -> "ErrorRule":
        return self.times(1)

    def times(self, count: int) -> "ErrorRule":
        """Let the next `count` requests that match fail. They must: fewer fail the test."""
        if count < 1:
            raise CannotInject(f"times({count}): at least one request must fail")
        self.limit = count
        return self

    def always(self) -> "ErrorRule":
        """Let every request that matches fail, until the test ends; at least one must come."""
        self.limit = None
        return self

    def heal(self) -> None:
        """Let all further requests pass."""
        self.is_over = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()

    def unproven(self) -> str | None:
        """What it failed to do; None if it did what was asked for."""
        if self.limit == 0:
            return f"{self} was never armed: add .once(), .times(n) or .always()"
        if self.fired < (self.limit or 1):
            done = f"fired {self.fired} of {self.limit} times" if self.fired else "never fired"
            return f"{self} {done}{f' ({self.why_not})' if self.why_not else ''}"
        return None

    @property
    def is_live(self) -> bool:
        return not self.is_over and (self.limit is None or self.fired < self.limit)

    def __str__(self) -> str:
        topic = "" if self.topic is None else f", topic={self.topic!r}"
        return f'inject("{self.error.name}", api="{camel_case(self.api)}"{topic})'


class InjectedErrors:
    """A `Tamper`. Rules are added by tests, and used up in the thread of the proxies."""

    def __init__(self) -> None:
        self._rules: tuple[ErrorRule, ...] = ()
        self._names: dict[UUID, str] = {}

    def add(self, error: str, api: str, topic: str | None) -> ErrorRule:
        """Raises CannotInject for a name that is unknown, or a topic where the API names none."""
        code = ErrorCode[_one_of(_errors(), "error", error)]
        name = _one_of([camel_case(each) for each in PLACES], "error of API", api)
        rule = ErrorRule(
            code, api=next(each for each in PLACES if camel_case(each) == name), topic=topic
        )
        if topic is not None and PLACES[rule.api].topics is None:
            raise CannotInject(f"{name} names no topic: leave out topic={topic!r}")
        self._rules = (*self._rules, rule)
        return rule

    def clear(self) -> list[ErrorRule]:
        """End all rules, and return them."""
        rules, self._rules = self._rules, ()
        for rule in rules:
            rule.heal()
        return list(rules)

    def exchange(self, link: Link, request: bytes) -> Exchange | None:
        """Decides about one request; nothing is decoded that no rule may want."""
        if link.source != CLIENTS:
            return None
        key = int.from_bytes(request[:2])
        rules = [each for each in self._rules if each.is_live and api_key_of(each.api) == key]
        if not rules and key != _METADATA_KEY:
            return None
        for rule in rules:
            refusal = self._refusal(rule, PLACES[rule.api], request)
            if refusal is not None:
                return refusal
        return Exchange(request, partial(self._answer, rules, request))

    def _refusal(self, rule: ErrorRule, place: Place, frame: bytes) -> Exchange | None:
        """The exchange with a broker that hears nothing of what fails; None if it shall hear it."""
        if place.request is None or rule.error in AFTERWARDS:
            return None
        try:
            asked = decode_request(frame)
            wanted = self._wanted(rule)
            if getattr(asked.body, "acks", None) == 0 or not asked_in(asked.body, place, wanted):
                return None
            rest = without(asked.body, place, wanted)
            made = None if rest is None else b"".join(_encoded(asked, rest))
            _answered(rule, asked, None, wanted)  # it must be possible, before it counts
        except _Unreadable as error:
            rule.why_not = f"{type(error).__name__}: {error}"
            return None
        rule.fired += 1
        return Exchange(made, lambda answer: _answered(rule, asked, answer or None, wanted))

    def _answer(self, rules: list[ErrorRule], request: bytes, answer: bytes) -> bytes:
        """The answer of a broker, spoiled by the first rule that it concerns."""
        key, version = int.from_bytes(request[:2]), int.from_bytes(request[2:4])
        api = api_by_key(key)
        if api is None or version not in api.versions:
            return answer
        try:
            correlation_id, body = decode_response(answer, key, version)
            if key == _METADATA_KEY:
                self._names |= {each.topic_id: each.name for each in body.topics if each.name}
            for rule in rules:
                wanted = None if rule.topic is None else self._wanted(rule)
                made = spoiled(rule.api, body, PLACES[rule.api], wanted, rule.error)
                if made is not None and rule.is_live:
                    frame = b"".join(encode_response(made, key, version, correlation_id))
                    rule.fired += 1
                    return frame
        except _Unreadable as error:
            for rule in rules:
                rule.why_not = f"{type(error).__name__}: {error}"
        return answer

    def _wanted(self, rule: ErrorRule) -> Wanted:
        if rule.topic is None:
            return lambda _: True
        return lambda topic: topic_name(topic, self._names) == rule.topic


def _errors() -> list[str]:
    return [code.name for code in ErrorCode if code is not ErrorCode.NONE]


def _encoded(asked: DecodedRequest, body: Any) -> list[bytes]:
    return encode_request(body, asked.api_version, asked.correlation_id, asked.client_id)


def _answered(
    rule: ErrorRule, asked: DecodedRequest, answer: bytes | None, wanted: Wanted
) -> bytes:
    """The answer in which what was withheld has failed."""
    key, version = asked.api_key, asked.api_version
    rest = None if answer is None else decode_response(answer, key, version)[1]
    body = refused(rule.api, asked.body, PLACES[rule.api], wanted, rule.error, rest)
    return b"".join(encode_response(body, key, version, asked.correlation_id))
