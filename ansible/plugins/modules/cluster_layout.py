#!/usr/bin/python
"""Reads which master of a cluster has which slots. Changes nothing."""

DOCUMENTATION = """
module: cluster_layout
short_description: Reads which master of a Redis Cluster or KeyDB cluster has which slots
description: Asks the first of some nodes that answers. Fails where none does, or where it is no cluster, or where slots have no master.
options:
  nodes: {type: list, elements: str, required: true, description: 'Nodes of one cluster, each C(host:port).'}
  user: {type: str, description: ACL user.}
  password: {type: str, description: Its password.}
  tls: {type: bool, default: false, description: Whether the ports speak TLS; the certificate is always verified.}
  tls_ca: {type: path, description: PEM file of the authority; implies tls.}
"""

RETURN = """
masters: {type: dict, returned: always, description: Slots of each master such as C(0-5460), by its address.}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.cluster import SLOTS, nodes_in, ranges_of
from ansible.module_utils.resp import Server, ServerError


def ask(params):
    """CLUSTER NODES of the first node that answers. @raises LookupError with why none does"""
    problems = []
    for address in params["nodes"]:
        host, _, port = address.rpartition(":")
        try:
            with Server(host.strip("[]"), int(port), params["user"], params["password"], params["tls_ca"], params["tls"]) as server:
                return nodes_in(server.call("CLUSTER", "NODES"))
        except (OSError, ServerError) as error:
            problems.append("%s: %s" % (address, error))
    raise LookupError("no node says which slots it has (%s)" % "; ".join(problems))


def main():
    """One reading."""
    spec = {
        "nodes": {"type": "list", "elements": "str", "required": True},
        "user": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "tls": {"type": "bool", "default": False},
        "tls_ca": {"type": "path"},
    }
    module = AnsibleModule(supports_check_mode=True, argument_spec=spec)
    try:
        nodes = ask(module.params)
    except LookupError as error:
        module.fail_json(msg="%s." % error)
    served = {slot for node in nodes for slot in node.slots}
    if len(served) < SLOTS:
        module.fail_json(msg="the slots %s have no master in %s." % (ranges_of(set(range(SLOTS)) - served), ", ".join(module.params["nodes"])))
    module.exit_json(changed=False, masters={node.address: ranges_of(node.slots) for node in nodes if node.slots})


if __name__ == "__main__":
    main()
