"""The options of the verbs that start, describe and stop clusters and nodes, and of their topics.

Loads little: what a verb runs is imported once its command line is understood.
"""

from quorumlab.output import FORMAT
from quorumlab.verbs.common import BROKERS, COMMAND_CONFIG, DIRECTORY, SECURITY
from wire.zk.designs import DESIGNS
from wire.zk.switches import SWITCHES

__all__ = ["VERBS"]

_INITIAL_CONTROLLERS = (
    "--initial-controllers ID@HOST:PORT:DIRECTORY-ID,…  the first voters; each of them is "
    "formatted with the same list"
)
_RELEASE_VERSION = (
    "--release-version RELEASE  begin with the features of a release of Apache Kafka, such as 4.3, "
    "so that its nodes can join (default: the newest that is known)"
)


_OF_NODE = f"id ID [int]  the node's id, as `status` shows it\n{DIRECTORY}\n{FORMAT}\n$ 2"

VERBS = {
    "up": f"""up:run
        Start the cluster in --dir, a new one if there is none, and watch it. Ctrl-C stops it in
        good order; its data stays, and the next `up` goes on with it.

        --controllers N  default: 3
        --brokers N  default: 3
        --combined  both roles in each process
        --dynamic  voters that live in the log: `quorum add-controller`, `quorum remove-controller`
        {_RELEASE_VERSION}
        --design DESIGN  who keeps the metadata: quorum, {", ".join(DESIGNS)} (default: quorum, or \
          what --dir holds)
        --engine ENGINE  who replicates the metadata of the quorum design: native (default), or \
          raftos
        --zookeepers N  servers of the ZooKeeper designs (default: 1)
        --zookeeper-connect HOST:PORT  a ZooKeeper that runs already, in the place of one of the \
          cluster's own
        --without NAME,…  improvements that are turned off in a new cluster of a ZooKeeper design: \
          {", ".join(SWITCHES)}
        {SECURITY}
        --port P  the first port of a new cluster (default: any free)
        --detach  leave it running in the background
        --set KEY=VALUE [*]  a setting of every node of a new cluster (may be repeated)
        {DIRECTORY}
        {FORMAT}
        $ --detach  three controllers and three brokers, in ./data
        $ --controllers 1 --brokers 1 --combined --port 9092
        $ --security sasl_ssl --detach  encrypted and authorized, with a user `admin`
        $ --design zk-v3 --zookeepers 3 --dir old""",
    "top": f"""top:run
        Controllers, brokers, partitions with those in trouble first, the metadata log as it
        grows, and the faults of a running chaos run. j/k or the arrows select a record, Enter
        tells why, q quits. Without a terminal: one screen.

        {BROKERS}, of any Kafka; or controllers
        {DIRECTORY}
        {COMMAND_CONFIG}
        --chaos DIR  a chaos run (default: the one that started the cluster in --dir)
        --once  print one screen
        --page PORT [int]  serve it as a page for browsers, at a port of this machine (0: any \
          free)
        $ --dir data
        $ --bootstrap-server localhost:9092  any Kafka
        $ --bootstrap-server localhost:9092 --page 8080""",
    "tour": """tour:run
        Ten minutes in the terminal, with everything real: start a cluster, kill nodes, read its
        log, plant a bug and see it convicted, compare two designs. Leaves nothing behind.

        --yes  do not wait for Enter before each step
        $ --yes  all of it, one step after the other""",
    "demo": f"""two_kills:run
        Start six processes, produce, kill -9 a partition leader and the active controller,
        restart both, and hold every acknowledged record against what is read back. Exit code 1 if
        one is missing. Its data stays.

        --dir D  its directory (default: a new one in ./demo-data)
        {SECURITY}
        $
        $ --security sasl_ssl""",
    "down": f"""nodes:down
        Stop every process of the cluster in --dir in good order, also those whose `up` is gone.
        The data stays.

        {DIRECTORY}
        {FORMAT}
        $ --dir data""",
    "status": f"""status:run
        Describe the cluster in --dir, dead nodes included. Exit code 3 if a node is down, no
        controller is active, or a partition lacks replicas or a leader.

        {DIRECTORY}
        {FORMAT}
        --watch  go on, with a line for whatever changes, until Ctrl-C
        $
        $ --format json""",
    "node-stop": f"nodes:stop\n{_OF_NODE}",
    "node-start": f"nodes:start\n{_OF_NODE}",
    "node-kill": f"nodes:kill\n{_OF_NODE}",
    "node": f"""run_node:run
        Run one node as its server.properties says, with Kafka's own defaults, until Ctrl-C. Its
        directories have to be formatted: `quorumlab format` does it.

        --config FILE [!]  its server.properties
        --format-as CLUSTER-ID  first format the directories that never were (for throw-away \
          clusters)
        {_INITIAL_CONTROLLERS}
        {_RELEASE_VERSION}
        --seed N  of the node's random choices
        $ --config server.properties""",
    "format": f"""format:run
        Prepare the data directories of a node. Where controller.quorum.voters is not set, the
        voters live in the log, and a controller has to be told how it begins.

        --config FILE [!]  the node's server.properties
        --cluster-id ID  default: that of directories that are formatted already, or, for a first \
          controller, a new one, which is printed
        --ignore-formatted  leave formatted directories as they are
        {_RELEASE_VERSION}
        --feature NAME=LEVEL [*]  begin with another level of a feature than the default; may be \
          repeated
        --add-scram USER [*]  a user that the cluster begins with, as \
          SCRAM-SHA-256=[name=alice,password=secret]; may be repeated
        | --standalone  this controller is the first and only voter
        | {_INITIAL_CONTROLLERS}
        | --no-initial-controllers  it joins a quorum as an observer, and is made a voter by \
          `quorum add-controller`
        {FORMAT}
        $ --config server.properties --standalone  the first controller
        $ --config broker4.properties --cluster-id MkU3OEVBNTcwNTJENDM2Qg""",
    "doctor": f"""doctor:run
        --format text|json|jsonl [text]
        {COMMAND_CONFIG}, for HOST:PORT
        --remove N  can node N be removed safely?
        targets TARGET [*]  directories of nodes or clusters, HOST:PORT (default: what is here)
        $
        $ data/node-1 data/node-2 data/node-3
        $ --remove 2 localhost:9092""",
}
