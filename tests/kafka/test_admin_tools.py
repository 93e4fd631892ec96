"""Apache Kafka's tools for configs, features, quotas, credentials and ACLs on a cluster of ours.

What they print was compared line by line with what the same version prints of a real Kafka; the
expected lines below are those.
"""

import re
from collections.abc import Iterator

import pytest

from controller.metadata.metadata_version import NEWEST
from jepsen_like.real.layout import FAST_SETTINGS
from jepsen_like.real.local_cluster import LocalCluster
from tests.kafka.interop import TOOLS, needs_kafka, tool, tools
from tests.kafka.kafka_jars import run_tool
from tests.started import started

pytestmark = needs_kafka

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("admin") / "cluster"
    settings = {
        **FAST_SETTINGS,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
    }
    with started(
        LocalCluster.create(
            directory, controllers=1, brokers=2, settings=settings, release_version="4.0"
        )
    ) as running:
        yield running


@pytest.fixture
def broker(cluster: LocalCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.layout.bootstrap_servers.split(",")[0]


def refused(name: str, *arguments: str) -> str:
    done = run_tool(TOOLS[name], arguments, timeout=60.0)
    assert done.returncode == 1, done.stdout
    return done.stdout + done.stderr


def values(described: str) -> dict[str, str]:
    """The synonyms of each config that is listed, by `key=value`."""
    return dict(re.findall(r"^  (\S+) sensitive=false synonyms=\{(.*)\}$", described, re.MULTILINE))


def test_configs_of_topics_brokers_and_their_default(broker: tuple[str, str]) -> None:
    topic = (*broker, "--entity-type", "topics", "--entity-name", "c")
    one = (*broker, "--entity-type", "brokers", "--entity-name", "1")
    default = (*broker, "--entity-type", "brokers", "--entity-default")
    tool("topics", *broker, "--create", "--topic", "c", "--replication-factor", "2")
    done = tools(
        ("configs", *topic, "--alter", "--add-config", "cleanup.policy=[compact,delete]"),
        ("configs", *one, "--alter", "--add-config", "log.retention.ms=360000"),
        ("configs", *default, "--alter", "--add-config", "log.retention.ms=7200000"),
    )
    assert done == [
        "Completed updating config for topic c.\n",
        "Completed updating config for broker 1.\n",
        "Completed updating default config for brokers in the cluster.\n",
    ]
    topics, everything, brokers = tools(
        ("configs", *topic, "--describe"),
        ("configs", *topic, "--describe", "--all"),
        ("configs", *one[:4], "--describe"),
    )
    assert topics == (
        "Dynamic configs for topic c are:\n"
        "  cleanup.policy=compact,delete sensitive=false synonyms="
        "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
    )
    assert len(values(everything)) == 33
    assert values(everything)["segment.bytes=1073741824"] == (
        "DEFAULT_CONFIG:log.segment.bytes=1073741824"
    )
    assert brokers == (
        "Dynamic configs for broker 1 are:\n"
        "  log.retention.ms=360000 sensitive=false synonyms="
        "{DYNAMIC_BROKER_CONFIG:log.retention.ms=360000, "
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000, "
        "DEFAULT_CONFIG:log.retention.hours=168}\n"
        "Dynamic configs for broker 2 are:\n"
        "Default configs for brokers in the cluster are:\n"
        "  log.retention.ms=7200000 sensitive=false synonyms="
        "{DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000}\n"
        "  min.insync.replicas=1 sensitive=false synonyms="  # settled with eligible leaders
        "{DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1}\n"
    )
    assert "InvalidConfigurationException" in refused(
        "configs", *topic, "--alter", "--add-config", "retention.ms=soon"
    )
    tool("configs", *topic, "--alter", "--delete-config", "cleanup.policy")
    assert values(tool("configs", *topic, "--describe")) == {}


def test_client_metrics_and_groups(broker: tuple[str, str]) -> None:
    metrics = (*broker, "--entity-type", "client-metrics")
    groups = (*broker, "--entity-type", "groups")
    tools(
        ("configs", *metrics, "--entity-name", "m", "--alter", "--add-config", "interval.ms=1000"),
        ("configs", *groups, "--entity-name", "g", "--alter", "--add-config",
         "consumer.session.timeout.ms=50000"),
    )  # fmt: skip
    described, grouped = tools(
        ("configs", *metrics, "--describe"), ("configs", *groups, "--describe")
    )
    assert described == (
        "Dynamic configs for client-metric m are:\n"
        "  interval.ms=1000 sensitive=false synonyms="
        "{DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=1000}\n"
    )
    assert grouped.startswith("Dynamic configs for group g are:\n")


def test_quotas_and_credentials_of_users(broker: tuple[str, str]) -> None:
    users, clients = ("--entity-type", "users"), ("--entity-type", "clients")
    alice = (*broker, "--alter", *users, "--entity-name", "alice")
    tool("configs", *alice, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    tools(
        ("configs", *alice, "--add-config", "producer_byte_rate=1024"),
        ("configs", *alice, *clients, "--entity-default", "--add-config", "request_percentage=50"),
        ("configs", *broker, "--alter", "--entity-type", "ips", "--entity-name", "10.0.0.1",
         "--add-config", "connection_creation_rate=5"),
    )  # fmt: skip
    one, both, addresses = tools(
        ("configs", *broker, "--describe", *users),
        ("configs", *broker, "--describe", *users, *clients),
        ("configs", *broker, "--describe", "--entity-type", "ips"),
    )
    assert one == (
        "Quota configs for user-principal 'alice' are producer_byte_rate=1024.0\n"
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192\n"
    )
    assert both == (
        "Quota configs for user-principal 'alice', the default client-id "
        "are request_percentage=50.0\n"
    )
    assert addresses == "Quota configs for ip '10.0.0.1' are connection_creation_rate=5.0\n"
    tool("configs", *alice, "--delete-config", "SCRAM-SHA-256")
    assert "SCRAM" not in tool("configs", *broker, "--describe", *users)


def test_acls(broker: tuple[str, str]) -> None:
    allowed = ("--allow-principal", "User:bob", "--operation", "Read", "--topic", "orders")
    added = tool("acls", *broker, "--add", *allowed)
    assert "(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)" in added
    listed = tool("acls", *broker, "--list")
    assert listed == (
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, "
        "patternType=LITERAL)`:\n"
        "\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)\n\n"
    )
    tool("acls", *broker, "--remove", *allowed, "--force")
    assert tool("acls", *broker, "--list") == ""


def test_features_are_raised_and_lowered(broker: tuple[str, str]) -> None:
    raised = tool("features", *broker, "upgrade", "--feature", "transaction.version=2")
    assert raised == "transaction.version was upgraded to 2.\n"
    lowered = tool("features", *broker, "downgrade", "--feature", "transaction.version=1")
    assert lowered == "transaction.version was downgraded to 1.\n"
    # The levels between these two changed no format, so the way down is safe.
    tool("features", *broker, "downgrade", "--feature", "metadata.version=23")
    described = tool("features", *broker, "describe")
    assert re.search(r"transaction.version\s.*FinalizedVersionLevel: 1\s", described)
    assert re.search(r"metadata.version\s.*FinalizedVersionLevel: 4.0-IV1\s", described)
    tool("topics", *broker, "--create", "--topic", "older", "--replication-factor", "2")
    for release, level in (("4.0", 25), ("4.3", 30)):
        upgraded = tool("features", *broker, "upgrade", "--release-version", release)
        assert f"metadata.version was upgraded to {level}.\n" in upgraded
    assert "share.version was upgraded to 1.\n" in upgraded, "Kafka's; nobody serves it"
    newest = tool("features", *broker, "upgrade", "--feature", f"metadata.version={NEWEST}")
    assert newest == f"metadata.version was upgraded to {NEWEST}.\n"
    tool("topics", *broker, "--create", "--topic", "newer", "--replication-factor", "2")
    too_low, unknown = (
        refused("features", *broker, "downgrade", "--feature", "metadata.version=7"),
        refused("features", *broker, "upgrade", "--feature", "nope=1"),
    )
    assert "might delete metadata information" in too_low
    assert "Local controller 101 does not support this feature." in unknown
