"""The options of `check`, `compare` and `bench`, which judge and measure. A test compares the names
they list with what there is.

Loads little: what a verb runs is imported once its command line is understood.
"""

from quorum.raftos.engines import ENGINES
from quorumlab.output import FORMAT
from quorumlab.verbs.common import SECURITY

__all__ = ["LOCAL_MB", "PARTITIONS", "SECONDS", "VERBS"]

LOCAL_MB = 50  # about a million operations: some ten seconds
PARTITIONS = "100,1000"
SECONDS = 60.0
_LEVELS = "read-committed|snapshot-isolation|serializable|strict-serializable"


VERBS = {
    "check": f"""check:run
        Judge a history. Exit codes: 0 valid, 4 violated, 5 undecided or void.

        target TARGET [+]  a run's directory, ours or in Jepsen's store, one with many runs in it \
          (on Spark), or a .msgpack, .jepsen, .edn, .jsonl, .txt, .log or .parquet file; several \
          are judged together on Spark, and else one after the other; or one of these where only \
          Spark reads it: s3a://…, hdfs://…, and table:NAME of a catalog
        --on local|spark  the same rules judge; default: spark for many runs, or more than \
          {LOCAL_MB} MB, if it is installed
        --master URL  Spark's, such as spark://host:7077 (default: local[*])
        --remote URL  instead of a master, a Spark Connect server: sc://HOST:PORT
        --verdicts PATH  write the table of verdicts, as Parquet, or as table:NAME: where Spark \
          can write, and nothing is yet
        --timeout N [positive 3600]  seconds until Spark's job is given up \
          (default: 3600)
        --worker-memory MB [6144]  of each Python worker of Spark, at most \
          (default: 6144)
        --model NAME  what it is judged as, if not what it says: \
          admin, append, bank, cas-register, counter, kafka, kv, log, observe, \
          partition-epoch, queue, register, rw-register, set, total-queue, \
          transactions; or FILE:NAME, a Model of your own (see examples/)
        --seconds N [positive {SECONDS}]  for searches, all together; then undecided; on Spark as \
          many steps of each as one may take in it (default: {SECONDS:.0f})
        --initial VALUE  what registers hold before anybody writes, as JSON or a text \
          (default: nil; of a history of others it is not known)
        --isolation {_LEVELS}  what transactions of reads and writes were promised \
          (default: strict-serializable)
        --trust-failures  what failed did not happen, even if it says that it timed out; the \
          verdict counts these
        --report FILE  write what happened as one HTML page (default, if a run's directory is \
          judged here and is violated: report.html in it)
        --export FILE  the headline and the course of it as one picture: .svg, or .png (needs \
          quorumlab[png])
        {FORMAT}
        $ run1
        $ run1 --export run1.svg  a picture of it
        $ history.edn --model cas-register  a history of Jepsen
        $ --on spark --remote sc://localhost:15002 run1 run2""",
    "compare": f"""compare:run
        Start a cluster of each design, one after the other, do the same to each, and tell what it
        took: when each step was done, what clients saw, what it cost.

        --designs D,…  of zk-v1, zk-v2, zk-v3, zk-redesign, zk-kip497, quorum
        --engines E,…  of quorum: {", ".join(ENGINES)}
        --experiments X,…  of broker-crash, controller-failover, broker-pause, \
          controlled-shutdown, topic-creation, isr-change, reassignment, zookeeper-leader, \
          rolling-restart, crash-in-a-flood, broker-bounce, improvements (each improvement of a \
          ZooKeeper design on and off, where it acts)
        --partitions P,…  how many (default: {PARTITIONS}; quick: 100)
        --settings equal|defaults|both  equal time-outs for all, or each design's own (default: \
          both; quick: equal)
        --quick  broker-crash and controller-failover, in about two minutes
        --runs N [1]  measure each cell so often, and tell how far they lie apart (default: 1)
        --budget MIN [positive]  leave out what takes longer
        --out DIR [compared]
        --stored  measure nothing, and tell again of what --out holds
        --export FILE  the answers as one picture: .svg, or .png (needs quorumlab[png])
        --seed N [1]  default: 1
        {SECURITY}; of the quorum design
        --zookeeper-delay MS [0]  answers of ZooKeeper come so much later (default: 0)
        {FORMAT}
        $ --quick  in about two minutes
        $ --quick --runs 3  with a spread
        $ --designs quorum --security sasl_ssl --out secured  what encryption costs
        $ --stored --export answers.svg  a picture of what was measured
        $ --designs quorum,zk-v2 --partitions 100,1000 --out compared""",
    "bench": """bench:run
        Run benchmarks, from a clone of the repository: one JSON line a figure.

        names NAME [*]  which (default: all)
        --list  name them, and run none
        --partitions PARTITIONS [int]  of broker-failure (default: 1000000)
        --format json|figures  of broker-failure
        $ --list
        $ broker-failure --partitions 100000""",
}
