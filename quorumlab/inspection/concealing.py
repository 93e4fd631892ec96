"""Records without what is a password, or checks one: so they are told in stories, and to `top` and
the pages of nodes, which go over a network. `inspect dump` shows what the files hold.

Source: Kafka's ConfigurationControlManager and DescribeConfigs (sensitive configs).
"""

from controller.metadata.config_keys import BROKER_KEYS, ConfigType
from controller.metadata.image import ResourceType
from quorumlab.listener_protocols import bare_key
from wire.message import replace
from wire.metadata_records import ConfigRecord, MetadataRecord, UserScramCredentialRecord

__all__ = ["HIDDEN", "concealed", "shown_value"]

HIDDEN = "(hidden)"


def concealed(record: MetadataRecord) -> MetadataRecord:
    match record:
        case UserScramCredentialRecord():
            return replace(record, salt=b"", stored_key=b"", server_key=b"")
        case ConfigRecord(resource_type=type_, name=name, value=str(value)):
            return replace(record, value=shown_value(type_, name, value))
        case _:
            return record


def shown_value(resource_type: int, name: str, value: str) -> str:
    """The value of a config, unless it is sensitive: a key that nobody knows may be a plugin's."""
    key = BROKER_KEYS.get(bare_key(name))
    is_sensitive = key is None or key.type is ConfigType.PASSWORD
    return HIDDEN if resource_type == ResourceType.BROKER and is_sensitive else value
