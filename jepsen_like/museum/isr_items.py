"""Items of the data plane, D and R10, R11: who is in sync, as leader and controller settle it.

Source: the reliability facts, section 4.1.
"""

from jepsen_like.museum.item import Exhibit, Item

__all__ = ["ISR_ITEMS"]

_ALTER_PARTITION = "AlterPartition (KIP-497), 2.7 and later"
_KRAFT = "KRaft"

ISR_ITEMS = (
    Item(
        id="D1",
        title="The high watermark runs ahead of the ISR",
        issue="KIP-497 (the maximal ISR)",
        design=_ALTER_PARTITION,
        mechanism=(
            "A leader asks for an ISR change and counts on the ISR that it wants, or on the one "
            "that it knows. Until it has heard of the controller's decision, somebody whom it "
            "does not count may be elected without the record."
        ),
        mended_by="the maximal ISR: whoever may be in it counts",
        exhibits=(
            Exhibit(
                schedule="shrink_under_way",
                plants="counts_on_the_shrunk_isr",
                violated="D-THW",
                seen="lost-write",
                really="lost-write",
            ),
            Exhibit(
                schedule="expand_under_way",
                plants="counts_on_the_committed_isr",
                violated="D-THW",
                seen="lost-write",
            ),
            Exhibit(
                schedule="expand_under_way",
                plants="takes_silence_for_a_refusal",
                violated="D-MAX",
                seen="lost-write",
            ),
        ),
    ),
    Item(
        id="D2",
        title="Nobody looks after a shrink",
        issue="KAFKA-13091",
        design=_ALTER_PARTITION,
        mechanism=(
            "A smaller ISR may commit what waited for the replica that left, but the leader looks "
            "at that only when somebody fetches. Where nothing moves, a write waits for nothing."
        ),
        mended_by="the leader looks when the answer arrives",
        exhibits=(
            Exhibit(
                schedule="shrink_commits", plants="does_not_look_after_an_answer", violated="L-HW"
            ),
        ),
    ),
    Item(
        id="D3",
        title="A question that is never asked again",
        issue="KAFKA-12686, KAFKA-13254",
        design=_ALTER_PARTITION,
        mechanism=(
            "A leader has one ISR change on its way at a time. If the request is lost and what "
            "waits for it is not cleared, no other is ever sent."
        ),
        mended_by="one request in flight, repeated until it is answered",
        exhibits=(Exhibit(schedule="question_that_is_lost", plants="asks_once", violated="L-ISR"),),
    ),
    Item(
        id="D4",
        title="The answer that is lost",
        issue="KAFKA-14144",
        design=_ALTER_PARTITION,
        mechanism=(
            "The controller changes the ISR and its answer is lost; the leader asks again with "
            "the epoch of before and is refused as outdated. It waits for an answer that never "
            "comes, and the ISR stays as it is."
        ),
        mended_by="the metadata says what was decided, and ends the waiting",
        exhibits=(
            Exhibit(
                schedule="answer_that_is_lost",
                plants="believes_only_answers",
                violated="L-ISR",
                really="L-ISR",
            ),
        ),
    ),
    Item(
        id="D5",
        title="A deposed controller answers",
        issue="KAFKA-14154",
        design=_ALTER_PARTITION + ", and KRaft",
        mechanism=(
            "A leader whose connection leads to the former controller is refused by what that one "
            "knew: its epoch is called wrong. It believes so and waits for newer metadata, which "
            "there is none."
        ),
        mended_by="who is asked about an epoch that it does not know is not the controller",
        exhibits=(
            Exhibit(
                schedule="deposed_controller", plants="answers_from_old_knowledge", violated="L-ISR"
            ),
        ),
    ),
    Item(
        id="D6",
        title="A fenced replica joins the ISR",
        issue="KAFKA-13916, KIP-841",
        design=_ALTER_PARTITION + ", and KRaft",
        mechanism=(
            "A follower that the controller does not hear is fenced, and still fetches. The "
            "leader asks for it to join, and a broker that nobody can reach may be elected."
        ),
        mended_by="the controller refuses: INELIGIBLE_REPLICA (KIP-841)",
        exhibits=(
            Exhibit(
                schedule="fenced_replica_catches_up",
                plants="takes_in_the_fenced",
                violated="M-FEN",
                really="M-FEN",
            ),
        ),
    ),
    Item(
        id="D7",
        title="In sync with an empty disk",
        issue="KAFKA-14139, KAFKA-14617, KIP-903",
        design=_ALTER_PARTITION + ", and KRaft",
        mechanism=(
            "While a leader's request to add a follower is on its way, that broker loses its disk "
            "and registers anew. It joins the ISR with nothing, and may lead."
        ),
        mended_by="the request names the broker epoch of every member (KIP-903)",
        exhibits=(
            Exhibit(
                schedule="replica_with_another_disk",
                plants="takes_in_other_lives",
                violated="D-THW",
                seen="lost-write",
                really="lost-write",
            ),
        ),
    ),
    Item(
        id="D8",
        title="Waiting for who may not come back",
        issue="KAFKA-15021",
        design=_KRAFT,
        mechanism=(
            "A broker that is shutting down has left the ISR, and was in sync just now. The "
            "leader holds the high watermark back for it, although it may not join again."
        ),
        mended_by="nobody waits for a replica that may not join",
        exhibits=(
            Exhibit(
                schedule="replica_that_shuts_down",
                plants="waits_for_whoever_fetches",
                violated="L-WR",
            ),
        ),
    ),
    Item(
        id="R10",
        title="The last replica standing",
        issue="KIP-966",
        design="all, until eligible leader replicas",
        mechanism=(
            "The ISR shrinks to one, which then loses records in a crash; being the last of the "
            "ISR, it leads again. The others, who have everything, cut off what it lost."
        ),
        mended_by="eligible leader replicas, and unclean stops that are noticed (KIP-966)",
        exhibits=(
            Exhibit(
                schedule="last_replica_standing",
                plants="trusts_every_stop",
                violated="D-THW",
                seen="lost-write",
            ),
        ),
    ),
    Item(
        id="R11",
        title="A broker that never catches up",
        issue="KAFKA-13959, KAFKA-16251",
        design=_KRAFT,
        mechanism=(
            "A broker is unfenced when it has all of the metadata, and the end of the log moves "
            "on while it says so. On a busy log it stays fenced for ever."
        ),
        mended_by="it must have applied its own registration, not everything",
        exhibits=(
            Exhibit(
                schedule="busy_metadata_log", plants="chases_the_end_of_the_log", violated="L-BR"
            ),
        ),
    ),
)
