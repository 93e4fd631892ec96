"""Items of ZooKeeper mode, A and most of B: one design has the weakness, another mends it.

The hole of these is a whole design, or one of its fields switched off: nothing is planted. That
what the high watermark of before loses is shown in `zk-v3` too belongs to B5.

Source: the reliability facts, section 4.1.
"""

from jepsen_like.museum.item import Exhibit, Item

__all__ = ["ZK_ITEMS"]

_V1 = {"design": "zk-v1"}
_V2 = {"design": "zk-v2"}
_V3 = {"design": "zk-v3"}
_REDESIGN = {"design": "zk-redesign"}
_KIP_497 = {"design": "zk-kip497"}
_WITHOUT_GENERATIONS = {**_REDESIGN, "without": "checks_generation"}

ZK_ITEMS = (
    Item(
        id="A1",
        title="The herd",
        issue="the simplest scheme",
        design="zk-v1",
        mechanism=(
            "Every replica watches the leader's node, and all of them run for it when it goes: "
            "one wins, the others have asked in vain. The death of one broker costs ZooKeeper as "
            "many requests as there are partitions times replicas."
        ),
        mended_by="a head start for the preferred replica, and in zk-v3 one who decides",
        exhibits=(Exhibit(schedule="herd", settings=_V1, mended=_V2, violated="Z-HERD"),),
    ),
    Item(
        id="A2",
        title="Split brain",
        issue="the simplest scheme, KIP-101",
        design="zk-v1",
        mechanism=(
            "Who owns the leader's node leads, and the data path knows no epoch: one that has lost "
            "its session believes in itself until it hears otherwise. It takes the others out of "
            "the ISR by a write that nothing guards, and acknowledges beside its successor."
        ),
        mended_by="an epoch in the leader's node, which the conditional write of the ISR names",
        exhibits=(
            Exhibit(
                schedule="split_brain",
                settings=_V1,
                mended=_V2,
                violated="D-ONE",
                seen="inconsistent-offsets",
            ),
        ),
    ),
    Item(
        id="A4",
        title="A queue that is full",
        issue="the state-change queues of V2",
        design="zk-v2",
        mechanism=(
            "Leaders queue in ZooKeeper what a broker has to start and to close, and one that is "
            "away takes nothing out. A full queue keeps the last close-replica of each partition; "
            "where these fill it, every other partition that has to tell that broker something "
            "waits until it is back."
        ),
        mended_by="commands from one controller; who comes back reads what it holds (zk-v3)",
        exhibits=(
            Exhibit(
                schedule="state_queue_is_full",
                settings=_V2,
                mended=_V3,
                violated="Z-QUEUE",
                really="Z-QUEUE",
            ),
        ),
    ),
    Item(
        id="B1",
        title="A bounce that nobody sees",
        issue="KAFKA-1155, KIP-380",
        design="zk-redesign before KIP-380",
        mechanism=(
            "A watch fires once, and what is read then is how things are by then: a broker that "
            "has gone and come back is in the list as before. Nobody tells it what it has to "
            "serve, and it leaves the ISR for good."
        ),
        mended_by="the generation of a broker: the czxid of its registration (KIP-380)",
        exhibits=(
            Exhibit(
                schedule="bounce_that_nobody_sees",
                settings=_WITHOUT_GENERATIONS,
                mended=_REDESIGN,
                violated="L-ISR",
            ),
        ),
    ),
    Item(
        id="B2",
        title="A controller goes on with what it knew",
        issue="KAFKA-3083",
        design="zk-v3",
        mechanism=(
            "A controller sleeps past its session in the middle of an election, and another takes "
            "over. When it wakes up it finishes in its next session what it had begun, for a "
            "broker that has long been back."
        ),
        mended_by="with the session all goes that was to be done in it; writes hold in one epoch",
        exhibits=(
            Exhibit(
                schedule="controller_sleeps_past_its_session",
                settings=_V3,
                mended=_REDESIGN,
                violated="Z-CE",
            ),
        ),
    ),
    Item(
        id="B3",
        title="The command of a former controller",
        issue="KAFKA-1188",
        design="zk-v3",
        mechanism=(
            "A command that names all that a broker holds arrives when the next controller is in "
            "office. The broker deletes what it does not name, a topic that was created since, "
            "and is elected without the records that it had."
        ),
        mended_by="brokers refuse commands of an earlier controller epoch; none deletes by silence",
        exhibits=(
            Exhibit(
                schedule="command_of_a_former_controller",
                settings=_V3,
                mended=_REDESIGN,
                violated="D-ACK",
                seen="lost-write",
            ),
        ),
    ),
    Item(
        id="B4",
        title="A command that is lost",
        issue="Kafka's development list",
        design="zk-v3",
        mechanism=(
            "A command that gets no answer in time is given up, and the next one is sent. A "
            "broker that was elected never hears so, and the partition has no leader."
        ),
        mended_by="the same command again until the broker answers or is gone",
        exhibits=(
            Exhibit(
                schedule="command_is_lost",
                settings=_V3,
                mended=_REDESIGN,
                violated="L-PL",
                really="L-PL",
            ),
        ),
    ),
    Item(
        id="B7",
        title="News of the ISR, a minute late",
        issue="KAFKA-2722, KIP-497",
        design="zk-redesign",
        mechanism=(
            "Leaders write the ISR themselves and tell the controller by a notification, which "
            "waits for five quiet seconds, up to a minute. While the ISR goes on changing, "
            "clients and controller know one of long ago."
        ),
        mended_by="the controller alone writes the ISR, and tells everybody at once (KIP-497)",
        exhibits=(
            Exhibit(
                schedule="isr_news_takes_its_time",
                settings=_REDESIGN,
                mended=_KIP_497,
                violated="L-ISR",
                really="L-ISR",
            ),
        ),
    ),
    Item(
        id="B8",
        title="An office that ends behind the queue",
        issue="KAFKA-6082",
        design="zk-redesign",
        mechanism=(
            "That another is the controller is one more event in the queue. What stands before it "
            "is still decided and written, over what the successor has found to be well; brokers "
            "follow one leader, and ZooKeeper names another."
        ),
        mended_by="each write checks the version of /controller_epoch in the same transaction",
        exhibits=(
            Exhibit(
                schedule="office_ends_behind_the_queue",
                settings=_REDESIGN,
                mended=_KIP_497,
                violated="Z-CE",
            ),
        ),
    ),
    Item(
        id="B9",
        title="A version that is out of date for ever",
        issue="KAFKA-2729",
        design="zk-v3",
        mechanism=(
            "A leader's conditional writes fail once somebody else has written, and only a "
            "command tells it the new version. If that is lost, it never changes its ISR again, "
            "and waits for a replica that is gone."
        ),
        mended_by="commands that are repeated; AlterIsr answers with the state (KIP-497)",
        exhibits=(
            Exhibit(
                schedule="version_that_is_out_of_date",
                settings=_V3,
                mended=_KIP_497,
                violated="L-WR",
                really="L-WR",
            ),
        ),
    ),
    Item(
        id="B13",
        title="A command for an earlier life",
        issue="KAFKA-7235, KIP-380",
        design="zk-redesign before KIP-380",
        mechanism=(
            "A broker stops in order, and the StopReplica that belongs to that is still on its "
            "way. It arrives when the broker is back, which stops what it has just begun to "
            "follow."
        ),
        mended_by="commands name the generation of the broker that they are for (KIP-380)",
        exhibits=(
            Exhibit(
                schedule="stop_for_an_earlier_life",
                settings=_WITHOUT_GENERATIONS,
                mended=_REDESIGN,
                violated="L-ISR",
            ),
        ),
    ),
)
