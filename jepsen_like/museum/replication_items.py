"""Items of the data plane, B and C: how logs are truncated, and who may lead.

Source: the reliability facts, section 4.1.
"""

from jepsen_like.museum.item import Exhibit, Item

__all__ = ["REPLICATION_ITEMS"]

_BEFORE_KIP_101 = "ZooKeeper, until 0.11"
_BEFORE_KIP_320 = "ZooKeeper, until 2.1"

REPLICATION_ITEMS = (
    Item(
        id="B5",
        title="A follower cuts off what was acknowledged",
        issue="KAFKA-1211, KIP-101",
        design=_BEFORE_KIP_101,
        mechanism=(
            "A follower hears of the high watermark one fetch late, and cuts its log back to what "
            "it heard before it follows again. If the leader dies before it has fetched anew, it "
            "is elected from the ISR without a record that was acknowledged."
        ),
        mended_by="truncation by leader epoch (KIP-101)",
        exhibits=(
            Exhibit(
                schedule="kip_101_loss",
                plants="truncates_to_the_high_watermark",
                violated="D-THW",
                seen="lost-write",
                really="lost-write",
            ),
            Exhibit(
                schedule="high_watermark_of_before",
                settings={"design": "zk-v3"},
                mended={"design": "zk-redesign"},
                violated="D-ACK",
                seen="lost-write",
                really="lost-write",
            ),
        ),
    ),
    Item(
        id="B6",
        title="Two records at one offset",
        issue="KIP-101",
        design=_BEFORE_KIP_101,
        mechanism=(
            "Two leaders have written different records at one offset, and the one that follows "
            "now says only where its log ends. The leader sends what comes next, and the logs "
            "differ below the high watermark for ever."
        ),
        mended_by="a follower says the epoch of its last record (KIP-101)",
        exhibits=(
            Exhibit(
                schedule="kip_101_divergence",
                plants="tells_no_epoch",
                violated="D-THW",
                seen="inconsistent-offsets",
                really="inconsistent-offsets",
            ),
        ),
    ),
    Item(
        id="B16",
        title="An election from outside the ISR",
        issue="KAFKA-4623, KIP-106",
        design="all, if unclean.leader.election.enable is set; the default until 0.11",
        mechanism=(
            "When nobody of the ISR is alive, any replica may lead. What was acknowledged and it "
            "does not have is gone, and the others cut it off when they come back."
        ),
        mended_by="unclean.leader.election.enable=false, the default since KIP-106",
        exhibits=(
            Exhibit(
                schedule="leader_alone",
                settings={"unclean": True},
                seen="lost-write",
                really="lost-write",
            ),
        ),
    ),
    Item(
        id="B17",
        title="Acknowledged by all, who are one",
        issue="Jepsen on Kafka 0.8, 2013",
        design="ZooKeeper, 0.8",
        mechanism=(
            "The ISR shrinks to the leader, and acks=all goes on: all that are in sync have the "
            "record. When the leader dies, an unclean election loses it."
        ),
        mended_by="min.insync.replicas: too few in sync acknowledge nothing",
        exhibits=(
            Exhibit(
                schedule="leader_alone",
                settings={"unclean": True, "min_insync_replicas": 1},
                mended={"unclean": True, "min_insync_replicas": 2},
                seen="lost-write",
            ),
        ),
    ),
    Item(
        id="C1",
        title="An epoch that the leader never had",
        issue="KAFKA-6361, KIP-279",
        design="ZooKeeper, until 2.0",
        mechanism=(
            "A follower asks where an epoch ends that never wrote on the leader, and is told "
            "where the next one begins. That says nothing of the follower's records: it keeps one "
            "that nobody else has, below what comes next."
        ),
        mended_by="the answer names the largest epoch that is known, and the follower asks on",
        exhibits=(
            Exhibit(
                schedule="kip_279",
                plants="answers_for_any_epoch",
                violated="D-THW",
                seen="inconsistent-offsets",
                really="inconsistent-offsets",
            ),
            Exhibit(
                schedule="kip_279", plants="truncates_where_the_leader_says", violated="events"
            ),
        ),
    ),
    Item(
        id="C2",
        title="A leader of old counts followers of another",
        issue="KAFKA-7395, KIP-320",
        design=_BEFORE_KIP_320,
        mechanism=(
            "Fetches carry no leader epoch: a leader that has not heard of its end counts where "
            "followers stand in the log of another leader. It exposes a record that they never "
            "had."
        ),
        mended_by="fetches carry the leader epoch, and others are fenced (KIP-320)",
        exhibits=(
            Exhibit(
                schedule="kip_320",
                plants="serves_any_epoch,tells_no_epoch",
                violated="D-THW",
                seen="inconsistent-offsets",
            ),
        ),
    ),
    Item(
        id="C3",
        title="In sync below where the epoch begins",
        issue="KAFKA-7128",
        design="ZooKeeper, until 2.1",
        mechanism=(
            "A new leader does not know yet that its last records are committed. A follower that "
            "reaches the high watermark it does know joins the ISR without them, and may lead "
            "next."
        ),
        mended_by="who joins has reached where the leader's epoch began",
        exhibits=(
            Exhibit(
                schedule="replica_behind_the_new_leader",
                plants="joins_at_the_high_watermark",
                violated="D-THW",
                seen="lost-write",
            ),
        ),
    ),
    Item(
        id="C4",
        title="The answer of a former leader",
        issue="KAFKA-7164, KAFKA-7415, KAFKA-7786",
        design=_BEFORE_KIP_320,
        mechanism=(
            "A follower applies an answer although the leader epoch has changed since it asked. "
            "It appends what its leader of now does not have."
        ),
        mended_by="an answer to a question of another epoch is dropped",
        exhibits=(
            Exhibit(
                schedule="answer_of_a_former_leader", plants="obeys_late_answers", violated="D-PRE"
            ),
        ),
    ),
)
