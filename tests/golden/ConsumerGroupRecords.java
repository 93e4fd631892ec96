/**
 * Prints consumer_group_records.json: records of groups of the consumer protocol (KIP-848), as Apache
 * Kafka's own helpers make them. From the repository's root:
 *
 *     java -cp '.cache/kafka/4.3.1/*' tests/golden/ConsumerGroupRecords.java \
 *         > tests/golden/consumer_group_records.json
 */
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ResolvedRegularExpression;

public class ConsumerGroupRecords {
    private static final List<String> LINES = new ArrayList<>();
    private static final Uuid TOPIC = new Uuid(1, 2);

    public static void main(String[] arguments) {
        print("epoch", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord("g\u00e9", 7, -5L));
        print("epoch without hash", GroupCoordinatorRecordHelpers.newConsumerGroupEpochRecord("g\u00e9", 1, 0L));
        print("no epoch", GroupCoordinatorRecordHelpers.newConsumerGroupEpochTombstoneRecord("g\u00e9"));
        print("subscription", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord("g\u00e9", member()));
        print("classic subscription", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionRecord("g\u00e9", classic()));
        print("no subscription", GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionTombstoneRecord("g\u00e9", "m"));
        print("target epoch", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataRecord("g\u00e9", 7, 1700000000000L));
        print("no target epoch", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentMetadataTombstoneRecord("g\u00e9"));
        print("target", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord("g\u00e9", "m", Map.of(TOPIC, Set.of(3))));
        print("no target", GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentTombstoneRecord("g\u00e9", "m"));
        print("current", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord("g\u00e9", member()));
        print("no current", GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentTombstoneRecord("g\u00e9", "m"));
        print("pattern", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionRecord(
            "g\u00e9", "a.*", new ResolvedRegularExpression(Set.of("ab"), 12L, 1700000000001L)));
        print("no pattern", GroupCoordinatorRecordHelpers.newConsumerGroupRegularExpressionTombstone("g\u00e9", "a.*"));
        System.out.println("[\n" + String.join(",\n", LINES) + "\n]");
    }

    private static ConsumerGroupMember.Builder said() {
        return new ConsumerGroupMember.Builder("m")
            .setInstanceId("i").setRackId("r").setClientId("client").setClientHost("/127.0.0.1")
            .setSubscribedTopicNames(List.of("b", "a")).setSubscribedTopicRegex("a.*")
            .setRebalanceTimeoutMs(300000).setServerAssignorName("range");
    }

    private static ConsumerGroupMember member() {
        return said().setMemberEpoch(7).setPreviousMemberEpoch(6).setState(MemberState.UNREVOKED_PARTITIONS)
            .setAssignedPartitions(Map.of(TOPIC, epochs(0, 4, 2, 7)))
            .setPartitionsPendingRevocation(Map.of(TOPIC, epochs(5, 3))).build();
    }

    private static ConsumerGroupMember classic() {
        return said().setInstanceId(null).setRackId(null).setServerAssignorName(null).setSubscribedTopicRegex("")
            .setClassicMemberMetadata(new ConsumerGroupMemberMetadataValue.ClassicMemberMetadata()
                .setSessionTimeoutMs(45000)
                .setSupportedProtocols(List.of(new ConsumerGroupMemberMetadataValue.ClassicProtocol()
                    .setName("range").setMetadata(new byte[] {1, 2, 3})))).build();
    }

    private static Map<Integer, Integer> epochs(int... pairs) {
        Map<Integer, Integer> found = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) found.put(pairs[at], pairs[at + 1]);
        return found;
    }

    private static void print(String what, CoordinatorRecord record) {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        LINES.add(String.format("{\"what\": \"%s\", \"key\": \"%s\", \"value\": %s}", what,
            hex(serde.serializeKey(record)),
            record.value() == null ? "null" : "\"" + hex(serde.serializeValue(record)) + "\""));
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }
}
