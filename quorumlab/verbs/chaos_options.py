"""The options of `quorumlab chaos`. A test compares the names they list with what there is.

Loads little: what a verb runs, such as the simulator, takes a second or two. It is imported once a
command line is understood.
"""

from typing import Any

from jepsen_like.faults.kinds import KINDS
from jepsen_like.sim.runs.sim_arguments import ABOUT_SIM, SIM_OPTIONS
from quorum.raftos.engines import ENGINES, NATIVE
from quorumlab.output import FORMAT
from quorumlab.verbs.common import COMMAND_CONFIG, SECURITY
from wire.zk.designs import DESIGNS

__all__ = [
    "FAULTS",
    "FAULTS_OF_PROCESSES",
    "KINDS_OF_PROCESSES",
    "SIM_DEFAULTS",
    "VERBS",
    "ZK_FAULTS",
]

FAULTS = "kill,partition,pause"
ZK_FAULTS = "kill,pause,kill-zookeeper,cut-zookeeper"
FAULTS_OF_PROCESSES = "kill,pause"
KINDS_OF_PROCESSES = [kind for kind, known in KINDS.items() if not known.not_on_processes]
SIM_DEFAULTS: dict[str, Any] = {
    "design": "quorum",
    "zookeepers": 1,
    "engine": NATIVE,
    "seconds": 20,
    "no_idempotence": False,
    "invariants": False,
}
_PLAN = f"""
    --design DESIGN  quorum, or {", ".join(DESIGNS)} (default: quorum)
    --zookeepers N  of a zk design (default: 1)
    --engine ENGINE  native; raftos cannot be simulated
    --workload NAME  bank, cas-register, kafka, log, observe, register, set, transactions
    --faults KIND,…  none, or kinds as in `chaos run`; kill:majority names the role (default: \
      {FAULTS}, and of a zk design {ZK_FAULTS})
    --seconds N  of virtual time (default: 20)
    --no-idempotence  of producers
    --invariants  end a run at the first invariant that is broken"""

VERBS = {
    "scenario": """chaos_scenario:run
        scenario SCENARIO [*]  its number, its name, a schedule, a file; all: every scenario that \
          is shipped
        --rewrite  write what comes of it into the files
        --plant NAME  play on rules with this bug
        --commands  list what a scenario may say
        $ all  each must come out as it is written
        $ --commands""",
    "museum": """chaos_museum:run
        item ITEM [?]  B5, D1, R2, …: tell this one; all: play all
        --seeds N  count runs with the times of N seeds
        --real  on real processes, which takes a minute an item
        --format table|json|markdown [table]
        $ B5
        $ all --seeds 20""",
    "sim": f"""chaos_sim:run_sim
        {ABOUT_SIM}

        {SIM_OPTIONS}{_PLAN}
        --seeds A..B  a run for each (with --workload)
        --out DIR  keep runs, each in DIR/seed-N
        --on local|spark [local]  where the seeds are run (default: local)
        --master URL  run them on Spark: local[*], spark://…
        --remote URL  run them on Spark, by its Connect server: sc://HOST:PORT
        --table PATH  write what each seed came to, as Parquet: where Spark can write, and \
          nothing is
        --timeout N [positive 86400]  seconds until Spark's job is given up (default: a day)
        $ --sweep 100 --cluster
        $ --workload log --faults kill,partition --seeds 1..50 --out runs""",
    "replay": f"""chaos_sim:run_replay
        directory DIR [?]  of a kept run
        --seed N
        --plant NAME  run on rules with this bug{_PLAN}
        --out DIR  keep it there
        $ runs/seed-7
        $ --seed 7 --workload log --faults kill""",
    "shrink": """chaos_sim:run_shrink
        directory DIR  of a kept run
        --out DIR  default: DIR/shrunk
        $ runs/seed-7""",
    "run": f"""chaos_run:run
        Start a cluster in --out, drive it with real clients while faults come and go, heal it,
        and judge the history. Exit codes: 0 valid, 4 violated, 5 void or undecided.

        --design DESIGN [quorum]  quorum, or {", ".join(DESIGNS)} (default: quorum)
        --engine ENGINE [{NATIVE}]  {", ".join(ENGINES)} (default: {NATIVE})
        --workload NAME [log]  admin, bank, cas-register, kafka, log, observe, \
          partition-epoch, register, set, transactions (default: log)
        --faults KIND,…  none, or some of {", ".join(KINDS_OF_PROCESSES)}; kill:majority \
          names the role that it strikes (default: {FAULTS_OF_PROCESSES}, and with \
          ZooKeeper kill-zookeeper)
        --seconds N [60]  with faults (default: 60)
        --seed N  of wishes and faults (default: a random one)
        --out DIR  a new directory (default: chaos-WORKLOAD-SEED)
        --controllers N  default: 3
        --zookeepers N  of a zk design (default: 1)
        --brokers N  default: 3
        --client confluent|aiokafka [confluent]  of the log's records
        --no-idempotence  producers that are not idempotent
        --watch spark  tell what is certain of the history while it is written
        --keep  keep the nodes' data also when nothing was violated
        {SECURITY}
        --bootstrap-server HOST:PORT,…  a cluster that somebody else runs
        {COMMAND_CONFIG}, for --bootstrap-server
        {FORMAT}
        $ --faults kill --seconds 20
        $ --faults kill,partition --workload cas-register --out run1
        $ --design zk-v2 --faults kill-zookeeper
        $ --security sasl_ssl --faults partition,rotate-certificates""",
    "report": f"""chaos_report:run
        Make the runs that --out does not hold yet, then write the page. What is there is never
        made again: void runs count.

        --design DESIGN [quorum]  quorum, or {", ".join(DESIGNS)}: a section of the page
        --out DIR [!]  of the runs
        --page FILE  default: DIR/report.md
        --export FILE  the campaign as one picture: .svg, or .png (needs quorumlab[png])
        --runs N [30]  default: 30
        --seconds N [60]  of each, with faults (default: 60)
        --seed N [1]  default: 1
        $ --out runs --runs 100  goes on where it was interrupted
        $ --out zk-runs --design zk-v3""",
    "timeline": """chaos_history:timeline
        target TARGET  a run's directory, or a history file
        | --around N,…  operations by their index (default: the evidence of the run's own verdict)
        | --all  not only what surrounds the evidence
        --context N [20]  operations before and after each piece of evidence \
          (default: 20)
        $ run1  what surrounds the evidence of its verdict
        $ run1 --around 120,341""",
    "export": """chaos_history:export
        Write a history as Jepsen's EDN, or as JSON lines; `quorumlab check` reads both back.

        target TARGET  a run's directory, or a history file
        |! --edn FILE  as Jepsen's history.edn
        |! --jsonl FILE  an object an operation
        $ run1 --edn history.edn""",
}
