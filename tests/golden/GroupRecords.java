/**
 * Prints group_records.json: keys and values of __consumer_offsets in every version that Apache
 * Kafka's own encoder has. From the repository's root:
 *
 *     java -cp '.cache/kafka/4.3.1/*' tests/golden/GroupRecords.java > tests/golden/group_records.json
 */
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.group.generated.GroupMetadataKey;
import org.apache.kafka.coordinator.group.generated.GroupMetadataValue;
import org.apache.kafka.coordinator.group.generated.LegacyOffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;

public class GroupRecords {
    private static final List<String> LINES = new ArrayList<>();

    public static void main(String[] arguments) {
        key("offset key", 1, new OffsetCommitKey().setGroup("g\u00e9").setTopic("t").setPartition(7));
        key("old offset key", 0, new LegacyOffsetCommitKey().setGroup("g\u00e9").setTopic("t").setPartition(7));
        key("group key", 2, new GroupMetadataKey().setGroup("g\u00e9"));
        for (short version = 0; version <= OffsetCommitValue.HIGHEST_SUPPORTED_VERSION; version++) {
            value("offset", version, offset(version));
            value("group", version, group(version));
            value("empty group", version, empty(version));
        }
        System.out.println("[\n" + String.join(",\n", LINES) + "\n]");
    }

    private static OffsetCommitValue offset(short version) {
        OffsetCommitValue value = new OffsetCommitValue()
            .setOffset(1234567890123L).setMetadata("m\u00e9ta").setCommitTimestamp(1700000000000L);
        if (version == 1) value.setExpireTimestamp(1700000099000L);
        if (version >= 3) value.setLeaderEpoch(9);
        if (version >= 4) value.setTopicId(new Uuid(1, 2));
        return value;
    }

    private static GroupMetadataValue group(short version) {
        List<GroupMetadataValue.MemberMetadata> members = new ArrayList<>();
        for (String id : List.of("m-1", "m-2")) {
            GroupMetadataValue.MemberMetadata member = new GroupMetadataValue.MemberMetadata()
                .setMemberId(id).setClientId("client").setClientHost("/127.0.0.1")
                .setSessionTimeout(45000).setSubscription(new byte[] {1, 2, 3})
                .setAssignment(id.equals("m-1") ? new byte[] {4, 5} : new byte[0]);
            if (version >= 1) member.setRebalanceTimeout(300000);
            if (version >= 3) member.setGroupInstanceId(id.equals("m-1") ? "i" : null);
            members.add(member);
        }
        GroupMetadataValue value = new GroupMetadataValue()
            .setProtocolType("consumer").setGeneration(5).setProtocol("range").setLeader("m-1")
            .setMembers(members);
        return version >= 2 ? value.setCurrentStateTimestamp(1700000000001L) : value;
    }

    private static GroupMetadataValue empty(short version) {
        GroupMetadataValue value = new GroupMetadataValue()
            .setProtocolType("consumer").setGeneration(6).setProtocol(null).setLeader(null)
            .setMembers(List.of());
        return version >= 2 ? value.setCurrentStateTimestamp(1700000000002L) : value;
    }

    /** The kind of a key stands before it as a version does before a value. */
    private static void key(String what, int kind, ApiMessage message) {
        byte[] content = MessageUtil.toCoordinatorTypePrefixedBytes(message);
        line(what, kind, content);
    }

    private static void value(String what, short version, Message message) {
        line(what, version, MessageUtil.toVersionPrefixedBytes(version, message));
    }

    private static void line(String what, int version, byte[] content) {
        String hex = HexFormat.of().formatHex(content);
        LINES.add(String.format("  {\"what\": \"%s\", \"version\": %d, \"bytes\": \"%s\"}", what, version, hex));
    }
}
