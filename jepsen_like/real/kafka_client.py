"""A blocking client of one request at a time: what the command line needs to ask a cluster.

Speaks Kafka's protocol to any bootstrap server, ours or not, in the newest version that both know.
Never repeats a request: what has no answer may have been done, and is not done twice.
"""

import socket
import ssl
from collections.abc import Sequence
from typing import Any, Self, TypeVar

from jepsen_like.real.client_handshakes import sasl_dialogue, tls_context
from jepsen_like.real.client_settings import PLAIN, ClientSettings
from jepsen_like.real.layout import ClusterError
from wire.api_table import API_VERSIONS_KEY, Api, api_of
from wire.apis import decode_response, encode_request
from wire.errors import ErrorCode
from wire.framing import FrameError, FrameReader, with_length
from wire.messages.features import ApiVersionsRequest, ApiVersionsResponse
from wire.security.client_authentication import AuthenticationFailed
from wire.security.security_protocol import SecurityProtocol
from wire.security.tls_failures import tls_failure
from wire.varint import Malformed

__all__ = ["Client", "NoAnswer", "NotAuthenticated", "NotConnected", "refusal"]

_CLIENT_ID = "quorumlab"
_CLIENT_VERSION = "0.1.0"
_API_VERSIONS_VERSION = 3  # the first that names the client; every broker since 2.4 has it
_CLOSED = "the server closed the connection"
_READS = ("describe_", "list_", "metadata", "fetch")  # how the names of APIs begin that only ask
Answer = TypeVar("Answer")


class NoAnswer(ClusterError):
    """No server answered. What was asked for may have been done all the same, or be done yet."""


class NotConnected(NoAnswer):
    """Nothing was even asked."""


class NotAuthenticated(ClusterError):
    """The server refuses the user."""


def refusal(code: ErrorCode, message: str | None) -> str:
    """`TOPIC_ALREADY_EXISTS: Topic 't' already exists.`"""
    return f"{code.name}: {message}" if message else code.name


def _no_answer(api: Api, why: str) -> NoAnswer:
    text = f"no answer to a {api.title} request {why}"
    if not api.name.startswith(_READS):
        text += " What was asked for may still happen"
    return NoAnswer(text.removesuffix("."))


class Client:
    """A connection to the first bootstrap server that answers."""

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        timeout_seconds: float = 10.0,
        *,
        settings: ClientSettings = PLAIN,
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._correlation_id = 0
        self._newest: dict[int, tuple[int, int]] = {}
        self.finalized: dict[str, int] = {}  # levels of features; those of level 0 are left out
        self._socket: socket.socket | None = None
        self._is_heard = False  # has a request been answered, after that for versions?
        self._frames = FrameReader()

    def __enter__(self) -> Self:
        reasons = []
        for host, port in self._servers:
            try:
                self._connect(host, port)
            except (OSError, FrameError, Malformed) as error:
                reasons.append(f"{host}:{port} ({self._in_words(error)})")
                self._close()
            else:
                return self
        raise NotConnected(
            f"no bootstrap server answers: {', '.join(reasons)}: start it, or name another"
        )

    def __exit__(self, *_: object) -> None:
        self._close()

    def ask(
        self, request: object, expected: type[Answer], *, timeout_seconds: float | None = None
    ) -> Answer:
        """Send one request and wait for its answer. Raises NoAnswer or ClusterError.

        `timeout_seconds`: of this one and those that follow.
        """
        if timeout_seconds is not None:
            assert self._socket is not None
            self._timeout_seconds = timeout_seconds
            self._socket.settimeout(timeout_seconds)
        api = api_of(type(request))
        version = self._version(api)
        try:
            answer = self._exchange(request, api.key, version)
        except TimeoutError as error:
            why = f"for {self._timeout_seconds:.0f} s: is a majority of the controllers up?"
            raise _no_answer(api, why) from error
        except (OSError, FrameError, Malformed) as error:
            raise _no_answer(api, f"({self._in_words(error)}).") from error
        assert isinstance(answer, expected), answer
        self._is_heard = True
        return answer

    def _version(self, api: Api) -> int:
        """The newest in common. Raises ClusterError."""
        theirs = self._newest.get(api.key)
        if theirs is None:
            raise ClusterError(
                f"the server does not serve {api.title} requests: is it a controller? Ask a broker"
            )
        version = min(api.asked.newest, theirs[1])
        if version < max(api.asked.oldest, theirs[0]):
            raise ClusterError(f"no version of {api.title} in common with the server")
        return version

    def _connect(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), self._timeout_seconds)
        self._frames = FrameReader()
        if self._settings.tls is not None:
            context = tls_context(self._settings.tls)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        request = ApiVersionsRequest(
            client_software_name=_CLIENT_ID, client_software_version=_CLIENT_VERSION
        )
        answer = self._exchange(request, API_VERSIONS_KEY, _API_VERSIONS_VERSION)
        assert isinstance(answer, ApiVersionsResponse), answer
        if answer.error_code != ErrorCode.NONE:
            raise Malformed(f"ApiVersions was refused: {answer.error_code.name}")
        self.finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        self._newest = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        if self._settings.protocol.uses_sasl:
            self._authenticate()

    def _authenticate(self) -> None:
        """Raises NotAuthenticated: another server would say the same."""
        dialogue = sasl_dialogue(self._settings)
        try:
            request = next(dialogue)
            while True:
                api = api_of(type(request))
                request = dialogue.send(self._exchange(request, api.key, self._version(api)))
        except StopIteration:
            return
        except AuthenticationFailed as error:
            self._close()
            raise NotAuthenticated(str(error)) from error

    def _exchange(self, request: object, api_key: int, version: int) -> Any:
        assert self._socket is not None
        self._correlation_id += 1
        frame = encode_request(request, version, self._correlation_id, _CLIENT_ID)
        self._socket.sendall(b"".join(with_length(frame)))
        correlation_id, body = decode_response(self._next_frame(), api_key, version)
        if correlation_id != self._correlation_id:
            raise Malformed(f"answer {correlation_id} to question {self._correlation_id}")
        return body

    def _next_frame(self) -> bytes:
        assert self._socket is not None
        while (frame := self._frames.next_frame()) is None:
            count = self._socket.recv_into(self._frames.get_buffer())
            if count == 0:
                raise ConnectionAbortedError(_CLOSED)
            self._frames.buffer_updated(count)
        return frame

    def _in_words(self, error: Exception) -> str:
        """A server that wants TLS or SASL cannot say so: it closes, or answers in TLS."""
        if isinstance(error, ssl.SSLError):
            is_plain = error.reason == "WRONG_VERSION_NUMBER"
            return "the server speaks no TLS" if is_plain else tls_failure(error)
        is_plain = self._settings.protocol is SecurityProtocol.PLAINTEXT
        if self._is_heard or not is_plain or isinstance(error, ConnectionRefusedError):
            return str(error)
        if not isinstance(error, ConnectionError | FrameError):
            return str(error)
        return f"{_CLOSED}: does it speak TLS or SASL? --command-config"

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
