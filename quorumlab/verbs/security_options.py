"""The options of `users` and `acls`: who may come in, and who may do what.

Loads little: what a verb runs is imported once its command line is understood.
"""

from quorumlab.arguments import group
from quorumlab.output import FORMAT
from quorumlab.verbs.common import BROKERS, COMMAND_CONFIG, DIRECTORY

__all__ = ["VERBS"]

_SHARED = f"{BROKERS}\n{DIRECTORY}\n{COMMAND_CONFIG}\n{FORMAT}"
_MECHANISMS = "SCRAM-SHA-256 or SCRAM-SHA-512"
_ADD_USER = f"""user USER  its name
    --mechanism NAME  {_MECHANISMS} (default: SCRAM-SHA-512)
    --iterations N  how slow a guess is made, from 4096 to 16384 (default: 4096)
    | --password-file FILE  its first line is the password
    | --password TEXT  the password itself, which other users of this machine may see
    {_SHARED}
    $ alice  asks for the password; without a terminal, reads a line
    $ alice --password-file alice.txt --command-config admin.properties"""
_RESOURCES = """--topic NAME [*]  a topic; '*' is all of them (may be repeated)
    --group NAME [*]  a consumer group (may be repeated)
    --transactional-id NAME [*]  of a producer (may be repeated)
    --cluster  the cluster itself"""
_PRINCIPALS = """--allow-principal TYPE:NAME [*]  User:alice, User:* (may be repeated)
    --deny-principal TYPE:NAME [*]  the same, refused before anything is allowed
    --allow-host HOST [*]  an address those allowed come from (default: any)
    --deny-host HOST [*]  an address those denied come from (default: any)
    --operation NAME [*]  Read, Write, Create, Delete, Alter, Describe, ClusterAction, \
      DescribeConfigs, AlterConfigs, IdempotentWrite, All (may be repeated; default: All)
    --producer  what a producer needs: Write, Describe and Create of topics, Write and Describe \
      of transactional ids
    --consumer  what a consumer needs: Read and Describe of topics, Read of groups"""
_ADD_ACL = f"""{_PRINCIPALS}
    {_RESOURCES}
    --resource-pattern-type literal|prefixed [literal]  is a name whole, or how names begin? \
      (default: literal)
    {_SHARED}
    $ --allow-principal User:alice --operation Read --operation Write --topic orders
    $ --allow-principal User:bob --consumer --topic orders --group auditors
    $ --deny-principal User:eve --topic secret- --resource-pattern-type prefixed"""
_FOUND = f"""{_RESOURCES}
    --resource-pattern-type any|match|literal|prefixed"""
_LIST_ACLS = f"""{_FOUND} [any]  which entries; match: all that apply to the name (default: any)
    --principal TYPE:NAME  only those of this principal
    {_SHARED}
    $
    $ --topic orders --resource-pattern-type match  whatever applies to orders"""
_DELETE_ACLS = f"""{_PRINCIPALS}
    {_FOUND} [literal]  which entries; match: all that apply to the name (default: literal)
    {_SHARED}
    $ --allow-principal User:alice --operation Write --topic orders
    $ --topic orders  all entries of this topic"""

VERBS = {
    "users": group(
        """Users who show a password (SCRAM), kept in the metadata log.
        $ add alice
        $ list""",
        {
            "add": f"users:add  a user, or a new password for one\n{_ADD_USER}",
            "list": f"""users:list_users  the users and their mechanisms
                user USER [?]  only this one
                {_SHARED}
                $ --format json""",
            "delete": f"""users:delete  forget a user's credentials
                user USER  which one
                --mechanism NAME  only this credential: {_MECHANISMS}
                {_SHARED}
                $ alice""",
        },
    ),
    "acls": group(
        """Who may do what (ACLs), with the options of kafka-acls.
        $ add --allow-principal User:alice --producer --topic orders
        $ list --topic orders""",
        {
            "add": f"acls:add  allow or deny operations\n{_ADD_ACL}",
            "list": f"acls:list_acls  who may do what\n{_LIST_ACLS}",
            "delete": f"acls:delete  take entries away\n{_DELETE_ACLS}",
        },
    ),
}
