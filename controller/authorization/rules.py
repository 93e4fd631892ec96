"""One rule for each API that a node serves."""

from collections.abc import Mapping

from controller.authorization import (
    cluster_rules,
    config_rules,
    consumer_group_rules,
    group_rules,
    record_rules,
    topic_rules,
    transaction_rules,
)
from controller.authorization.access import Rule, goes_on
from wire.messages.features import ApiVersionsRequest

__all__ = ["RULES"]

RULES: Mapping[type, Rule] = {
    ApiVersionsRequest: goes_on,
    **cluster_rules.RULES,
    **config_rules.RULES,
    **consumer_group_rules.RULES,
    **group_rules.RULES,
    **record_rules.RULES,
    **topic_rules.RULES,
    **transaction_rules.RULES,
}
