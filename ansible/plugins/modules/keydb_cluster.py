#!/usr/bin/python
"""Makes a KeyDB cluster of nodes that are empty, or has nodes join one that is there; what holds keys or slots is left as it is."""

DOCUMENTATION = """
module: keydb_cluster
short_description: Makes a KeyDB cluster once, and has nodes join it
description:
  - Reads every node first. Where no node has a slot, it makes the cluster. Where there is one, new nodes join it, as a replica or as a master
    without slots. It never moves a slot, never resets a node and never changes who is a master.
  - It refuses, and changes nothing, where a node is in another cluster or has keys of its own, where the nodes are in several clusters, and where
    slots are assigned to no node of a cluster that has keys.
  - In check mode it says what it would do.
options:
  nodes:
    type: list
    elements: dict
    required: true
    description: Every node of the cluster.
    options:
      name: {type: str, required: true, description: Its name in messages.}
      host: {type: str, required: true, description: Its IP address.}
      port: {type: int, required: true, description: Its port; the others reach it at this port and 10000 above.}
      slots: {type: str, default: "", description: Slots that it has from the start, such as C(0-5460) or C(0-99,200). Empty for a replica or an empty master.}
      replicates: {type: str, default: "", description: Name of the node whose replica it is at first.}
  source_slots:
    type: list
    elements: str
    default: []
    description: Slots of each master of the source. A new cluster in which two masters share the slots of one of these is refused. Empty checks nothing.
  user: {type: str, description: ACL user of every node.}
  password: {type: str, description: Its password.}
  tls: {type: bool, default: false, description: Whether the ports speak TLS; the certificate is always verified.}
  tls_ca: {type: path, description: PEM file of the authority; implies tls.}
  timeout: {type: int, default: 60, description: Seconds to wait for nodes that load their data, and for the cluster to be ready.}
"""

RETURN = """
found: {type: str, returned: always, description: What was there before.}
actions: {type: list, returned: always, description: What was done, or would be done in check mode, each as a sentence.}
assigns: {type: bool, returned: always, description: Whether slots are assigned that no node had.}
masters: {type: dict, returned: always, description: Slots by name of the master that has them now.}
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.cluster import SLOTS, nodes_in, ranges_of, slots_in
from ansible.module_utils.resp import Server, ServerError


class Refused(Exception):
    """Why nothing is changed."""


class Unfinished(Exception):
    """What is still missing; what was done stays, and another run goes on."""


class Member:
    """A node of the inventory, and what it says of itself."""

    def __init__(self, given, params):
        self.name, self.host, self.port, self.replicates = given["name"], given["host"], given["port"], given["replicates"]
        self.wanted = slots_in(given["slots"])
        self.server = Server(self.host, self.port, params["user"], params["password"], params["tls_ca"], params["tls"])
        self.read()

    def read(self):
        """@raises ServerError while it loads its data, and without cluster mode"""
        self.id = self.server.call("CLUSTER", "MYID")
        self.sees = {node.id: node for node in nodes_in(self.server.call("CLUSTER", "NODES"))}
        self.keys = self.server.call("DBSIZE")

    @property
    def me(self):
        return self.sees[self.id]

    def __str__(self):
        return "%s (%s:%d)" % (self.name, self.host, self.port)


class Cluster:
    """The nodes of the inventory, and the cluster that some of them make up; `main` is empty where no node has a slot."""

    def __init__(self, members):
        self.members, self.by_id, self.by_name = members, {each.id: each for each in members}, {each.name: each for each in members}
        if len(self.by_id) < len(members):
            raise Refused("two nodes have one ID: the nodes.conf of one was copied to the other. Remove the copy from the node that holds no keys")
        for each in members:
            others = sorted("%s (ID %s)" % (node.address, node.id) for node in each.sees.values() if node.id not in self.by_id)
            if others:
                raise Refused("%s is in a cluster with %s, which the inventory does not have. If that is another cluster, take the node out of the inventory. If it is this one, add the nodes to the inventory, or have every node forget them (CLUSTER FORGET ID)" % (each, ", ".join(others)))
        parts = self._parts()
        holding = [part for part in parts if any(each.me.slots for each in part)]
        if len(holding) > 1:
            raise Refused("the nodes are in %d clusters: %s. Take those of the other clusters out of the inventory" % (len(holding), "; ".join(map(describe, holding))))
        self.main = holding[0] if holding else []
        with_keys = [each for each in members if each.keys and each not in self.main]
        if with_keys:
            raise Refused("%s, and not in the cluster. Move the keys to another server, or remove them (FLUSHALL on that node), and run it again" % ", ".join("%s holds %d keys" % (each, each.keys) for each in with_keys))
        self.found = describe(self.main) if self.main else "no node has a slot or a key: there is no cluster yet"

    def _parts(self):
        """Members that know each other."""
        left, parts = list(self.members), []
        while left:
            part = [left.pop(0)]
            for each in part:
                known = [other for other in left if other.id in each.sees or each.id in other.sees]
                part += known
                left = [other for other in left if other not in known]
            parts.append(part)
        return parts

    @property
    def anchor(self):
        """The node that the others meet."""
        return (self.main or self.members)[0]

    def newcomers(self):
        """Those that join, in the order of the inventory."""
        return [each for each in self.members if each is not self.anchor and each.id not in self.anchor.sees]

    def assignments(self, source_slots):
        """(member, slots) that no node has yet. @raises Refused where they do not fit"""
        taken = {slot for each in self.main for slot in each.me.slots}
        free = set(range(SLOTS)) - taken
        if not free:
            return []
        if any(each.keys for each in self.main):
            raise Refused("no node has the slots %s in %s. Their node may have been forgotten. Assign them by hand (CLUSTER ADDSLOTS) once you know where their keys are" % (ranges_of(free), self.found))
        wanted = {each: each.wanted & free for each in self.members if each.wanted & free}
        missing = free - {slot for slots in wanted.values() for slot in slots}
        if missing:
            raise Refused("the inventory gives the slots %s to no node: give every slot from 0 to %d to one" % (ranges_of(missing), SLOTS - 1))
        for slots in source_slots:
            sharing = [each for each in self.members if each.wanted & slots]
            if len(sharing) > 1:
                raise Refused("one master of the source has the slots %s, and here %s share them: that takes %d proxies instead of one. Give each node whole masters of the source, or allow it (keydb_cluster_unaligned)" % (ranges_of(slots), " and ".join("%s has %s" % (each, ranges_of(each.wanted)) for each in sharing), len(sharing)))
        return list(wanted.items())

    def followers(self):
        """(member, whose replica it becomes): masters without slots that are to be replicas."""
        found = []
        for each in self.members:
            if each.replicates and "master" in each.me.flags and not each.me.slots:
                first = self.by_name[each.replicates]
                master = self.by_id[first.me.master] if first.me.master else first
                if master is not each:
                    found.append((each, master))
        return found


def describe(members):
    """Such as `a cluster of 6 nodes with the slots 0-16383 and 1200 keys`."""
    masters = [each for each in members if "master" in each.me.flags]
    slots = {slot for each in members for slot in each.me.slots}
    return "a cluster of %d nodes (%s) with the slots %s and %d keys" % (len(members), ", ".join(each.name for each in members), ranges_of(slots), sum(each.keys for each in masters))


def check(nodes):
    """@raises Refused where the inventory contradicts itself"""
    names, owners = {each["name"] for each in nodes}, {}
    for each in nodes:
        if each["replicates"] and (each["replicates"] not in names or each["slots"]):
            raise Refused("%s is to replicate %s: that must be another node of the cluster, and a replica has no slots of its own" % (each["name"], each["replicates"]))
        try:
            slots = slots_in(each["slots"])
        except ValueError as error:
            raise Refused("the slots of %s: %s" % (each["name"], error)) from None
        twice = slots & set(owners)
        if twice:
            raise Refused("the slots %s are given to %s and to %s: give each to one" % (ranges_of(twice), owners[min(twice)], each["name"]))
        owners.update(dict.fromkeys(slots, each["name"]))


def until_ready(problem, deadline):
    """@raises Unfinished with what `problem` returns, where that is still something at the end"""
    while found := problem():
        if time.monotonic() >= deadline:
            raise Unfinished(found)
        time.sleep(0.1)


def read_all(params, deadline):
    """@raises Refused with the node that cannot be asked"""
    members = []
    for each in params["nodes"]:
        while True:
            try:
                members.append(Member(each, params))
                break
            except (OSError, ServerError) as error:
                if "cluster support disabled" in str(error):
                    raise Refused("%s (%s:%d) runs without cluster mode, and a node that runs is not changed to it. Use a new node" % (each["name"], each["host"], each["port"])) from None
                if time.monotonic() >= deadline:
                    raise Refused("%s (%s:%d) cannot be asked: %s. Every node must run before the cluster is changed" % (each["name"], each["host"], each["port"], error)) from None
                time.sleep(0.25)
    return members


def meet(cluster, newcomers, deadline):
    """Until every node knows every other one."""
    for each in newcomers:
        each.server.call("CLUSTER", "MEET", cluster.anchor.host, cluster.anchor.port)
    until_ready(lambda: unmet(cluster), deadline)


def unmet(cluster):
    """Who does not know all others yet, or None."""
    alone = ["%s knows %d of %d" % (each, len(each.sees), len(cluster.members)) for each in reread(cluster) if set(each.sees) != set(cluster.by_id)]
    return "nodes do not find each other (%s). Is the port that is 10000 above KeyDB's open between them?" % ", ".join(alone) if alone else None


def reread(cluster):
    for each in cluster.members:
        each.read()
    return cluster.members


def unready(cluster):
    """What keeps the cluster from being ready, or None."""
    layouts = {tuple(sorted((node.id, node.master or "", ranges_of(node.slots)) for node in each.sees.values())) for each in reread(cluster)}
    if len(layouts) > 1:
        return "the nodes do not agree yet who has which slots"
    epochs = [each.me.epoch for each in cluster.members if each.me.slots]
    if len(set(epochs)) < len(epochs):
        return "two masters have one epoch"
    for each in cluster.members:
        if "cluster_state:ok" not in each.server.call("CLUSTER", "INFO"):
            return "the cluster is not ok at %s" % each
        if each.me.master and each.server.info().get("master_link_status") != "up":
            return "%s is not in sync with its master" % each
    return None


def apply(cluster, assignments, deadline):
    """Meet, slots, replicas, in this order: a run that ended in between goes on."""
    newcomers = cluster.newcomers()
    if newcomers:
        meet(cluster, newcomers, deadline)
    for each, slots in assignments:
        each.server.call("CLUSTER", "ADDSLOTS", *sorted(slots))
    reread(cluster)
    for each, master in cluster.followers():
        each.server.call("CLUSTER", "REPLICATE", master.id)
    until_ready(lambda: unready(cluster), deadline)


def run(params, check_mode):
    """@returns the result of the module"""
    check(params["nodes"])
    deadline = time.monotonic() + params["timeout"]
    cluster = Cluster(read_all(params, deadline))
    assignments = cluster.assignments([slots_in(each) for each in params["source_slots"]])
    actions = ["%s joins" % each for each in cluster.newcomers()]
    actions += ["%s gets the slots %s" % (each, ranges_of(slots)) for each, slots in assignments]
    actions += ["%s becomes a replica of %s" % pair for pair in cluster.followers()]
    if actions and not check_mode:
        apply(cluster, assignments, deadline)
    masters = {each.name: ranges_of(each.me.slots) for each in cluster.members if "master" in each.me.flags}
    return {"changed": bool(actions), "found": cluster.found, "actions": actions, "assigns": bool(assignments), "masters": masters}


def main():
    """One run."""
    node = {
        "name": {"type": "str", "required": True},
        "host": {"type": "str", "required": True},
        "port": {"type": "int", "required": True},
        "slots": {"type": "str", "default": ""},
        "replicates": {"type": "str", "default": ""},
    }
    spec = {
        "nodes": {"type": "list", "elements": "dict", "required": True, "options": node},
        "source_slots": {"type": "list", "elements": "str", "default": []},
        "user": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "tls": {"type": "bool", "default": False},
        "tls_ca": {"type": "path"},
        "timeout": {"type": "int", "default": 60},
    }
    module = AnsibleModule(supports_check_mode=True, argument_spec=spec)
    try:
        module.exit_json(**run(module.params, module.check_mode))
    except Refused as why:
        module.fail_json(msg="Nothing is changed: %s." % why)
    except Unfinished as missing:
        module.fail_json(msg="The cluster is not ready: %s. What was done stays; run it again." % missing)
    except (OSError, ServerError) as error:
        module.fail_json(msg="A node refused or did not answer (%s). What was done stays; run it again." % error)


if __name__ == "__main__":
    main()
