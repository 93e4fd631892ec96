"""A chaos run on a secured cluster: its faults bite, and no secret leaves the files made for it."""

import io
from base64 import b64encode
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_IMODE

import pytest

from jepsen_like.real.credentials import Credentials
from jepsen_like.real.kafka_client import Client, NotAuthenticated
from jepsen_like.real.layout import NodeLayout
from jepsen_like.real.local_cluster import LocalCluster
from jepsen_like.real.pages import PageAccess
from jepsen_like.real.runs.chaos_run import execute
from jepsen_like.real.runs.outcome import Ran, Watcher
from jepsen_like.real.runs.run_options import RunOptions
from quorum.node.directories import open_directories
from quorumlab.cli import main
from quorumlab.first_records import first_records
from quorumlab.verbs.secured_cluster import with_credentials
from wire.metadata_records import UserScramCredentialRecord

pytestmark = pytest.mark.extra  # processes, keys and certificates of a whole cluster

FAULTS = ("kill", "partition", "rotate-certificates")
# Where the password lies, the private keys, and what decoys are made of. Nobody but the owner may
# read any of these.
KEPT = {
    *("cluster/client.properties", "cluster/librdkafka.properties", "cluster/security/http.users"),
    *(f"cluster/security/{name}.pem" for name in ("admin", "node-1", "node-2", "node-101")),
    *(
        "cluster/security/decoy.secret",
        *(f"cluster/{id_}/server.properties" for id_ in (1, 2, 101)),
    ),
}
PAGES = (
    *("/", "/metrics", "/v1/node", "/v1/pulse", "/v1/metadata", "/v1/milestones", "/v1/ledger"),
    *("/v1/applied?offsets=0", "/v1/topics", "/nowhere"),
)
# A process beside the node answers these, which takes a second to start.
READER_PAGES = ("/v1/page/events", "/v1/page/past?offset=-1", "/v1/page/story?subject=admin")
SECONDS = 15.0
WRONG = "guessed-4711"  # a password that is refused: it may be somebody's at another place


def basic(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()


def key_lines(pem: str) -> list[str]:
    """The lines of a private key, which stands before its certificate."""
    return pem.split("-----END PRIVATE KEY-----")[0].splitlines()[1:]


@dataclass
class Watching(Watcher):
    """Knows the secrets of the run, and keeps what is shown of it while it goes on."""

    secrets: set[str] = field(default_factory=lambda: {WRONG, basic("admin", WRONG)})
    shown: dict[str, str] = field(default_factory=dict)
    cluster: LocalCluster | None = None
    has_asked: bool = False

    def secure(self, cluster: LocalCluster) -> Credentials:
        credentials, files = with_credentials(cluster), cluster.layout.security_files
        issue, password = credentials.issue, credentials.brokers.password
        assert issue is not None
        self.cluster = cluster
        self.secrets |= {password, basic("admin", password), files.decoy_secret.read_text().strip()}
        for path in (files.admin, *(files.node(node.id) for node in cluster.layout.nodes)):
            self.secrets.update(key_lines(path.read_text()))

        def remembered(node_id: int) -> bytes:
            pem = issue(node_id)
            self.secrets.update(key_lines(pem.decode()))
            return pem

        return replace(credentials, issue=remembered)

    def progress(self, text: str) -> None:
        self.shown[f"progress {len(self.shown)}"] = text
        if text.startswith("final") and not self.has_asked:
            self.has_asked = True
            assert self.cluster is not None
            self._guess(self.cluster)
            for node in self.cluster.layout.nodes:
                self._ask_pages(self.cluster, node)

    def _guess(self, cluster: LocalCluster) -> None:
        broker = cluster.layout.brokers[0]
        guessed = replace(cluster.credentials.brokers, password=WRONG)
        with (
            pytest.raises(NotAuthenticated) as refused,
            Client([(broker.host, broker.port)], settings=guessed),
        ):
            pass
        self.shown["refused"] = str(refused.value)

    def _ask_pages(self, cluster: LocalCluster, node: NodeLayout) -> None:
        access = cluster.page_access
        assert access is not None
        stranger = PageAccess(
            authorization=f"Basic {basic('admin', WRONG)}", authorities=access.authorities
        )
        for path in (*PAGES, *(READER_PAGES if node.is_controller else ())):
            self.shown[f"{node.id}{path}"] = shown(node, path, access)
        assert shown(node, "/metrics", stranger).startswith("401")


def shown(node: NodeLayout, path: str, access: PageAccess) -> str:
    """The page, or the beginning of one that has no end."""
    connection = access.connection((node.host, node.http_port), SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": access.authorization})
        answer = connection.getresponse()
        body = b""
        with suppress(TimeoutError):
            while part := answer.read1():
                body += part
                if path.endswith("events") and len(body) > 2_000:
                    break
        return f"{answer.status} {answer.headers} {body.decode()}"
    finally:
        connection.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran, Watching]:
    directory = tmp_path_factory.mktemp("secured-chaos") / "run"
    options = RunOptions(
        directory=directory,
        faults=FAULTS,
        seconds=8,
        seed=4,
        controllers=1,
        brokers=2,
        security="sasl_ssl",
        keep=True,
    )
    watching = Watching()
    return directory, execute(options, watching, watching.secure), watching


def test_faults_bite_behind_tls_and_every_kept_promise_is_judged(
    run: tuple[Path, Ran, Watching],
) -> None:
    _, ran, _ = run
    assert ran.verdict.findings == ()
    proven = {each.kind for each in ran.fault_outcomes if each.proof.bit}
    assert proven == set(FAULTS)
    assert ran.safety.ok > 0
    assert ran.whole.ok > 100
    assert ran.recovered_seconds is not None


def test_secrets_lie_in_the_files_made_for_them_and_nowhere_else(
    run: tuple[Path, Ran, Watching],
) -> None:
    """Everything that the run leaves: logs, data, metadata log, history, report, description."""
    directory, _, watching = run
    files = {str(each.relative_to(directory)): each for each in directory.rglob("*")}
    contents = {name: path.read_bytes() for name, path in files.items() if path.is_file()}
    for needed in ("cluster/1/node.log", "history.msgpack", "report.html", "verdict.json"):
        assert contents[needed]
    assert set(telling(contents, watching.secrets)) == KEPT
    assert {S_IMODE(files[name].stat().st_mode) for name in KEPT} == {0o600}
    assert telling(contents, salted_keys(directory / "cluster" / "101" / "data")) == []
    keys = {name for name, content in contents.items() if b"PRIVATE KEY" in content}
    assert keys == {name for name in KEPT if name.endswith(".pem")}


def test_pages_tell_no_secret_and_no_key_that_checks_a_password(
    run: tuple[Path, Ran, Watching],
) -> None:
    directory, _, watching = run
    assert {watching.shown[f"1{page}"][:3] for page in ("/metrics", "/v1/node")} == {"200"}
    salted = salted_keys(directory / "cluster" / "101" / "data")
    contents = {name: text.encode() for name, text in watching.shown.items()}
    assert telling(contents, watching.secrets | salted) == []


def test_what_is_told_of_a_metadata_log_has_no_password(run: tuple[Path, Ran, Watching]) -> None:
    directory, _, watching = run
    data = str(directory / "cluster" / "101" / "data")
    told = {}
    for verb in (("summary",), ("dump",), ("at", "end"), ("verify",)):
        out = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with redirect_stdout(out):
            main(["inspect", *verb, data])
        out.seek(0)
        told[verb[0]] = out.read().encode()
    assert b"node-1.pem" in told["dump"], "the certificates that were changed"
    assert telling(told, watching.secrets) == []


def telling(contents: Mapping[str, bytes], secrets: Iterable[str]) -> list[str]:
    """The names of what tells any of the secrets."""
    assert all(len(secret) > 10 for secret in secrets)
    known = [secret.encode() for secret in secrets]
    return sorted(name for name, text in contents.items() if any(each in text for each in known))


def salted_keys(data: Path) -> set[str]:
    """What the metadata log keeps of the administrator's password, as JSON would have it."""
    opened = open_directories(str(data), [str(data)], node_id=101)
    try:
        (record,) = first_records(opened.metadata).others
    finally:
        opened.metadata.close()
    assert isinstance(record, UserScramCredentialRecord)
    return {b64encode(each).decode() for each in (record.stored_key, record.server_key)}
