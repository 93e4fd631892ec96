"""Items of the metadata quorum, R: votes, epochs, voters and snapshots.

Source: the reliability facts, section 4.1.
"""

from jepsen_like.museum.item import Exhibit, Item

__all__ = ["QUORUM_ITEMS"]

_KRAFT = "KRaft"

QUORUM_ITEMS = (
    Item(
        id="R1",
        title="A leader resumes its epoch",
        issue="KAFKA-10527",
        design=_KRAFT,
        mechanism=(
            "A leader loses what it had not synced, restarts, and finds itself leader in its "
            "file. It writes again at an offset and epoch that already name another record."
        ),
        mended_by="who restarts as leader has resigned",
        exhibits=(
            Exhibit(schedule="leader_loses_its_tail", plants="resumes_leadership", violated="R-UE"),
        ),
    ),
    Item(
        id="R2",
        title="A vote that is forgotten",
        issue="KAFKA-17426, KIP-853",
        design=_KRAFT,
        mechanism=(
            "A voter whose disk was replaced under the same id does not know what it has voted "
            "and acknowledged; nor does one that answered before its vote was synced. With the "
            "one that is behind it is a majority, and what was committed is gone."
        ),
        mended_by="a voter is a node with its disk (KIP-853); a vote is synced before its answer",
        exhibits=(
            Exhibit(
                schedule="voter_loses_its_disk",
                settings={"kraft_version": 0},
                mended={"kraft_version": 1},
                violated="R-LC",
                seen="vanished",
                really="lost-element",
            ),
            Exhibit(schedule="vote_is_lost", plants="answers_before_saving", violated="R-VD"),
        ),
    ),
    Item(
        id="R4",
        title="A leader that nobody hears",
        issue="KAFKA-15489",
        design=_KRAFT,
        mechanism=(
            "A leader that is cut off from the other voters never resigns. Whoever still hears it "
            "keeps to a controller that can decide nothing, while the others have another."
        ),
        mended_by="a leader that hears no majority resigns",
        exhibits=(
            Exhibit(
                schedule="leader_hears_only_observers",
                plants="never_checks_quorum",
                violated="R-CQ",
                really="L-EL",
            ),
        ),
    ),
    Item(
        id="R5",
        title="Who was away deposes the leader",
        issue="KIP-996",
        design=_KRAFT + ", until 4.0",
        mechanism=(
            "A voter that is cut off stands again and again, and each time in a higher epoch. "
            "When it is back, that epoch deposes a leader with which nothing is wrong."
        ),
        mended_by="who would stand asks first, and who hears its leader says no (KIP-996)",
        exhibits=(
            Exhibit(
                schedule="voter_is_cut_off",
                plants="stands_without_asking",
                violated="R-PV",
                really="L-ST",
            ),
            Exhibit(
                schedule="voter_hears_all_but_the_leader",
                plants="grants_pre_votes_while_following",
                violated="R-PV",
            ),
        ),
    ),
    Item(
        id="R6",
        title="Two who ask each other in vain",
        issue="KAFKA-17641",
        design=_KRAFT + ", 4.0 in development",
        mechanism=(
            "A leader dies that its followers know and have never fetched from. One after the "
            "other asks for a pre-vote, and the other refuses for the sake of the dead."
        ),
        mended_by="only who has fetched from its leader refuses",
        exhibits=(
            Exhibit(
                schedule="leader_dies_unheard",
                plants="refuses_pre_votes_for_any_leader",
                violated="L-EL",
            ),
        ),
    ),
    Item(
        id="R7",
        title="Voters change before a commit",
        issue="raft-dev, 2015; KIP-853",
        design=_KRAFT,
        mechanism=(
            "Two leaders of different epochs each write a change of voters that nobody commits. "
            "Each then counts by its own voters, and the majorities need not meet."
        ),
        mended_by="no change before a commit in the leader's own epoch",
        exhibits=(
            Exhibit(
                schedule="change_before_a_commit",
                plants="changes_voters_before_a_commit",
                violated="R-MC",
            ),
        ),
    ),
    Item(
        id="R8",
        title="The leader is removed",
        issue="KAFKA-17608, Raft thesis 4.2.2",
        design=_KRAFT,
        mechanism=(
            "A leader that removes itself leads until that is committed, without its own vote, "
            "and then must go. Each step is one to forget: it counts itself, leads on and spins, "
            "or does not stand again when it is needed."
        ),
        mended_by="who is removed does not count, stands until that is committed, and then resigns",
        exhibits=(
            Exhibit(
                schedule="leader_removes_itself",
                plants="counts_itself_though_removed",
                violated="R-HW",
            ),
            Exhibit(
                schedule="removed_leader_resigns",
                plants="leads_on_though_removed",
                violated="loop",
            ),
            Exhibit(
                schedule="removed_leader_dies_first",
                plants="does_not_stand_when_being_removed",
                violated="L-MC",
            ),
        ),
    ),
    Item(
        id="R9",
        title="Life goes on without a disk",
        issue="KAFKA-14644, KAFKA-14275, KAFKA-10778",
        design=_KRAFT,
        mechanism=(
            "A write to the log fails, and the process stays: what answers for it is not there "
            "any more, or answers with what was never stored. Nobody takes its place."
        ),
        mended_by="who cannot store stops",
        exhibits=(
            Exhibit(schedule="disk_fails", plants="goes_on_without_its_disk", violated="R-HW"),
        ),
    ),
    Item(
        id="R12",
        title="A snapshot under the wrong name",
        issue="KAFKA-14238, KAFKA-13100, KAFKA-14618",
        design=_KRAFT,
        mechanism=(
            "A snapshot is named by an offset that is not the end of what it holds. Who loads it "
            "applies a record twice, or never."
        ),
        mended_by="a snapshot is named by the end of what it holds",
        exhibits=(
            Exhibit(
                schedule="node_is_far_behind", plants="names_snapshots_one_off", violated="R-SS"
            ),
        ),
    ),
)
