"""The proxies on real sockets: cuts, delays, resets, and single frames that are struck."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from struct import pack, unpack

import pytest

from jepsen_like.faults.cut_links import both_ways
from jepsen_like.faults.message_rules import Action, FrameRule, Trigger
from jepsen_like.real.client_handshakes import tls_context
from jepsen_like.real.client_settings import ClientSettings
from jepsen_like.real.free_ports import free_ports
from jepsen_like.real.impairments import Cut, Delay, Refuse, SlowClose
from jepsen_like.real.layout import Link
from jepsen_like.real.proxy import ProxyMesh
from quorumlab.proxied_credentials import given_credentials
from tests.wire.security.certificates import NOW, authority, certified
from wire.security.security_protocol import SecurityProtocol
from wire.security.stores import StoreSettings
from wire.security.tls import TlsSettings, server_context

HOST = "127.0.0.1"
ASKER, ASKED = 1, 2
VOTE, FETCH = 52, 1
SOON = 0.15  # what does not come within it, is taken not to come
THERE = [(ASKER, ASKED)]
BACK = [(ASKED, ASKER)]


def receive(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise EOFError
        content += part
    return content


def read_frame(connection: socket.socket) -> bytes:
    (length,) = unpack(">i", receive(connection, 4))
    return receive(connection, length)


class Echo:
    """A node that remembers what it was asked, in order, and answers with the correlation id."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.asked: list[int] = []
        self.ended = threading.Event()  # a connection of it has
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection:
            try:
                while True:
                    frame = read_frame(connection)
                    self.asked.append(unpack(">i", frame[4:8])[0])
                    if frame[8:] != b"acks=0":
                        answer = frame[4:]
                        connection.sendall(pack(">i", len(answer)) + answer)
            except (OSError, EOFError):
                self.ended.set()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # a thread that waits in accept holds it open
        self._listener.close()
        for connection in self._connections:
            connection.close()


class Asker:
    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=5)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=HOST)

    def ask(self, *numbers: int, api_key: int = FETCH, content: bytes = b"") -> None:
        for number in numbers:
            frame = pack(">hhi", api_key, 0, number) + content
            self.socket.sendall(pack(">i", len(frame)) + frame)

    def answer(self, timeout_seconds: float = 5.0) -> int | None:
        """The correlation id of the next answer; None if there is none in time."""
        self.socket.settimeout(timeout_seconds)
        try:
            return int(unpack(">i", read_frame(self.socket)[:4])[0])
        except TimeoutError:
            return None

    def answers(self, count: int) -> list[int | None]:
        return [self.answer() for _ in range(count)]

    def close(self) -> None:
        self.socket.close()

    def is_reset(self) -> bool:
        self.socket.settimeout(5)
        try:
            return self.socket.recv(1) == b"" and False
        except ConnectionResetError:
            return True


def finds_a_reset(port: int) -> bool:
    try:
        return Asker(port).is_reset()
    except ConnectionResetError:  # before the connection was seen to be there
        return True


@pytest.fixture
def node() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    with contextlib.suppress(OSError):
        echo.close()


@pytest.fixture
def port() -> int:
    return next(free_ports())


@pytest.fixture
def mesh(node: Echo, port: int) -> Iterator[ProxyMesh]:
    link = Link(source=ASKER, target=ASKED, port=port, target_port=node.port, controller=True)
    with ProxyMesh([link]) as running:
        yield running


@pytest.fixture
def asker(mesh: ProxyMesh, port: int) -> Iterator[Asker]:
    connected = Asker(port)
    yield connected
    connected.close()


def soon(condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.005)
    return False


def rule(action: Action, *, is_request: bool, trigger: Trigger, api_key: int = VOTE) -> FrameRule:
    return FrameRule(action=action, api_key=api_key, is_request=is_request, trigger=trigger)


def test_frames_pass_both_ways(asker: Asker) -> None:
    asker.ask(1, 2, content=b"x" * 3_000_000)
    assert asker.answers(2) == [1, 2]


def test_cut_of_requests_lets_them_arrive_when_it_heals(
    mesh: ProxyMesh, asker: Asker, node: Echo
) -> None:
    asker.ask(1)
    assert asker.answer() == 1
    cut = mesh.impose(Cut(), THERE)
    asker.ask(2)
    assert asker.answer(SOON) is None
    assert node.asked == [1]
    mesh.lift(cut)
    assert asker.answer() == 2
    assert cut.counts == {"frames waited": 1}


def test_cut_of_answers_lets_requests_arrive(mesh: ProxyMesh, asker: Asker, node: Echo) -> None:
    cut = mesh.impose(Cut(), BACK)
    asker.ask(1)
    assert soon(lambda: node.asked == [1])
    assert asker.answer(SOON) is None
    mesh.lift(cut)
    assert asker.answer() == 1


def test_what_zookeeper_is_asked_is_cut_and_comes_late_and_no_rule_reads_it(
    node: Echo, port: int
) -> None:
    link = Link(source=ASKER, target=ASKED, port=port, target_port=node.port, zookeeper=True)
    with ProxyMesh([link]) as mesh, contextlib.closing(Asker(port)) as asker:
        held = mesh.arm(FrameRule(action=Action.HOLD, api_key=FETCH, is_request=True))
        asker.ask(1)
        assert asker.answer() == 1
        cut = mesh.impose(Cut(), [*THERE, *BACK])
        asker.ask(2)
        assert asker.answer(SOON) is None
        assert node.asked == [1]
        mesh.lift(cut)
        assert asker.answer() == 2
        assert cut.counts == {"frames waited": 1}
        assert held.calls == 0


def test_flow_with_two_cuts_needs_both_healed(mesh: ProxyMesh, asker: Asker) -> None:
    one = mesh.impose(Cut(), THERE)
    other = mesh.impose(Cut(), both_ways([ASKER], [ASKED]))
    asker.ask(1)
    mesh.lift(one)
    assert asker.answer(SOON) is None
    mesh.lift(other)
    assert asker.answer() == 1


def test_connection_during_a_cut_opens_and_hears_nothing(
    mesh: ProxyMesh, port: int, node: Echo
) -> None:
    cut = mesh.impose(Cut(), THERE)
    late = Asker(port)
    late.ask(1)
    assert late.answer(SOON) is None
    assert cut.counts == {"connections waited": 1}
    late.socket.close()
    mesh.heal()
    assert soon(lambda: node.asked == [1]), "what waited arrives, though nobody waits for it"


def test_delayed_frames_keep_their_order(mesh: ProxyMesh, asker: Asker) -> None:
    delay = mesh.impose(Delay(delay_ms=60, jitter_ms=20), THERE)
    began = time.monotonic()
    asker.ask(1, 2, 3)
    assert asker.answers(3) == [1, 2, 3]
    assert 0.06 <= time.monotonic() - began < 0.5
    assert delay.counts == {"frames delayed": 3}


def test_refusal_resets_what_is_there_and_what_comes(
    mesh: ProxyMesh, asker: Asker, port: int
) -> None:
    asker.ask(1)
    assert asker.answer() == 1
    refusal = mesh.impose(Refuse(), THERE)
    assert asker.is_reset()
    assert finds_a_reset(port)
    assert refusal.counts == {"connections reset": 1, "connections refused": 1}
    mesh.lift(refusal)
    again = Asker(port)
    again.ask(2)
    assert again.answer() == 2


def test_end_of_a_connection_is_told_late(mesh: ProxyMesh, asker: Asker, node: Echo) -> None:
    asker.ask(1)
    assert asker.answer() == 1
    slow = mesh.impose(SlowClose(delay_ms=150), THERE)
    assert mesh.leave_askers(THERE) == 1
    began = time.monotonic()
    assert asker.socket.recv(1) == b"", "the asker sees the end at once"
    assert node.ended.wait(5)
    assert time.monotonic() - began >= 0.1
    assert slow.counts == {"closes told late": 1}


def test_held_request_is_overtaken_and_answers_keep_their_order(
    mesh: ProxyMesh, asker: Asker, node: Echo
) -> None:
    held = mesh.arm(rule(Action.HOLD, is_request=True, trigger=Trigger(count=1)))
    asker.ask(1, api_key=VOTE)
    asker.ask(2)
    assert soon(lambda: node.asked == [2])
    assert asker.answer(SOON) is None, "the answer to 1 comes first"
    mesh.release(held)
    assert asker.answers(2) == [1, 2]
    assert node.asked == [2, 1]
    assert (held.calls, held.fired) == (1, 1)


def test_held_request_arrives_though_its_connection_is_gone(
    mesh: ProxyMesh, asker: Asker, node: Echo
) -> None:
    held = mesh.arm(rule(Action.HOLD, is_request=True, trigger=Trigger(count=1)))
    asker.ask(1, api_key=VOTE)
    assert soon(lambda: held.kept)
    asker.socket.close()
    assert node.ended.wait(5)
    mesh.release(held)
    assert soon(lambda: node.asked == [1])


def test_held_answer_comes_when_released(mesh: ProxyMesh, asker: Asker, node: Echo) -> None:
    held = mesh.arm(rule(Action.HOLD, is_request=False, trigger=Trigger(count=1)))
    asker.ask(1, api_key=FETCH)
    assert asker.answer() == 1
    asker.ask(2, 3, api_key=VOTE)
    assert asker.answer(SOON) is None
    assert node.asked == [1, 2, 3]
    mesh.release(held)
    assert asker.answers(2) == [2, 3]


def test_dropped_request_is_never_answered(mesh: ProxyMesh, asker: Asker, node: Echo) -> None:
    mesh.arm(rule(Action.DROP, is_request=True, trigger=Trigger(count=1)))
    asker.ask(1, 2, api_key=VOTE)
    assert soon(lambda: node.asked == [2])
    assert asker.answer(SOON) is None


def test_dropped_answer_is_lost_after_the_request_was_carried_out(
    mesh: ProxyMesh, asker: Asker, node: Echo
) -> None:
    mesh.arm(rule(Action.DROP, is_request=False, trigger=Trigger(count=1)))
    asker.ask(1, api_key=VOTE)
    assert soon(lambda: node.asked == [1])
    assert asker.answer(SOON) is None


def test_doubled_request_comes_twice_and_is_answered_once(
    mesh: ProxyMesh, asker: Asker, node: Echo
) -> None:
    mesh.arm(rule(Action.DUPLICATE, is_request=True, trigger=Trigger(count=1)))
    asker.ask(1, 2, api_key=VOTE)
    assert asker.answers(2) == [1, 2]
    assert soon(lambda: sorted(node.asked) == [1, 1, 2])
    assert asker.answer(SOON) is None


def test_doubled_answer_is_refused(mesh: ProxyMesh) -> None:
    with pytest.raises(ValueError, match="only requests"):
        mesh.arm(FrameRule(action=Action.DUPLICATE, api_key=VOTE, is_request=False))


def test_reordered_request_goes_behind_the_next(mesh: ProxyMesh, asker: Asker, node: Echo) -> None:
    mesh.arm(rule(Action.REORDER, is_request=True, trigger=Trigger(count=1)))
    asker.ask(1, 2, 3, api_key=VOTE)
    assert asker.answers(3) == [1, 2, 3]
    assert node.asked == [2, 1, 3]


def test_request_without_answer_holds_up_nobody(mesh: ProxyMesh, asker: Asker) -> None:
    asker.ask(1, content=b"acks=0")
    asker.ask(2)
    assert asker.answer() == 2


def test_node_that_is_not_there_resets_the_connection(
    mesh: ProxyMesh, node: Echo, port: int
) -> None:
    node.close()
    assert finds_a_reset(port)


def test_what_is_no_frame_resets_the_connection(mesh: ProxyMesh, asker: Asker) -> None:
    asker.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert asker.is_reset()


# --- TLS -------------------------------------------------------------------------------------

HELLO = b"\x16\x03\x01\x00\x05hello"  # a record: its type, version, length


@pytest.fixture
def tls_mesh(port: int) -> Iterator[tuple[ProxyMesh, socket.socket]]:
    """The proxy of a link of TLS, and who listens behind it."""
    with socket.create_server((HOST, 0)) as listener:
        target_port = listener.getsockname()[1]
        link = Link(source=ASKER, target=ASKED, port=port, target_port=target_port, tls=True)
        with ProxyMesh([link]) as running:
            yield running, listener


def test_records_of_tls_wait_and_pass_as_they_are(
    tls_mesh: tuple[ProxyMesh, socket.socket], port: int
) -> None:
    mesh, listener = tls_mesh
    with socket.create_connection((HOST, port)) as asker, listener.accept()[0] as asked:
        asker.sendall(HELLO)
        assert receive(asked, len(HELLO)) == HELLO
        cut = mesh.impose(Cut(), THERE)
        asker.sendall(HELLO)
        asked.settimeout(SOON)
        with pytest.raises(TimeoutError):
            asked.recv(1)
        mesh.lift(cut)
        asked.settimeout(5)
        assert receive(asked, len(HELLO)) == HELLO
        assert cut.is_proven


def test_what_is_no_tls_does_not_pass_where_it_should_be(
    tls_mesh: tuple[ProxyMesh, socket.socket], port: int
) -> None:
    _, listener = tls_mesh
    with socket.create_connection((HOST, port)) as asker, listener.accept()[0]:
        asker.sendall(pack(">ihhi", 8, FETCH, 0, 1))
        asker.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert asker.recv(1) == b""


def test_tls_ends_at_the_proxies_of_somebody_elses_brokers_and_begins_behind_them(
    port: int,
) -> None:
    """Each end judges a certificate: the asker that of the proxies, the proxy that of the node."""
    pem = certified("CN=node").pem
    shown = StoreSettings(name="ssl.keystore", type="PEM", certificates=pem, key=pem)
    trusted = StoreSettings(
        name="ssl.truststore", type="PEM", certificates=authority().certificate_pem
    )
    given = given_credentials(
        ClientSettings(protocol=SecurityProtocol.SSL, tls=TlsSettings(trust_store=trusted))
    )
    assert given.proxied is not None
    met = given.proxied.credentials.brokers.tls
    assert met is not None
    node = Echo(server_context(TlsSettings(key_store=shown), NOW))
    link = Link(source=ASKER, target=ASKED, port=port, target_port=0)
    with ProxyMesh([link], elsewhere={ASKED: (HOST, node.port)}, tls=given.proxied) as mesh:
        asker = Asker(port, tls_context(met))
        held = mesh.arm(FrameRule(action=Action.HOLD, api_key=VOTE, is_request=True))
        asker.ask(1, api_key=VOTE)
        assert asker.answer(SOON) is None, "the proxy reads what passes"
        mesh.release(held)
        assert asker.answer() == 1
        with pytest.raises(ssl.SSLCertVerificationError):
            Asker(port, given.proxied.asking)
        asker.close()
    node.close()
