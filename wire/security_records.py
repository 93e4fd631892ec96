"""The metadata records of security and quotas: declarations only.

`wire.metadata_records` has their keys and versions, and offers them with all the others.

Source: KIP-631; KIP-48 (delegation tokens), KIP-546 (quotas), KIP-801 (access control) and
KIP-900 (SCRAM).
"""

from wire.message import Message
from wire.record_schema import Bool, Bytes, Float64, Int8, Int32, Int64, String, Uuid

__all__ = [
    "AccessControlEntryRecord",
    "ClientQuotaRecord",
    "DelegationTokenRecord",
    "QuotaEntity",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveUserScramCredentialRecord",
    "UserScramCredentialRecord",
]


class DelegationTokenRecord(Message):
    owner: String  # principals are `Type:name`
    requester: String
    renewers: tuple[String, ...]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


class RemoveDelegationTokenRecord(Message):
    token_id: String


class UserScramCredentialRecord(Message):
    name: String
    mechanism: Int8  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


class RemoveUserScramCredentialRecord(Message):
    name: String
    mechanism: Int8


class QuotaEntity(Message):
    entity_type: String  # user, client-id, ip
    entity_name: String | None  # null: the default entity


class ClientQuotaRecord(Message):
    entity: tuple[QuotaEntity, ...]
    key: String
    value: Float64
    remove: Bool


class AccessControlEntryRecord(Message):
    id: Uuid
    resource_type: Int8  # 2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user
    resource_name: String
    pattern_type: Int8  # 3 literal, 4 prefixed
    principal: String
    host: String
    operation: Int8
    permission_type: Int8  # 2 deny, 3 allow


class RemoveAccessControlEntryRecord(Message):
    id: Uuid
