#!/usr/bin/python3
"""Runs before KeyDB starts: a node that would start as the primary starts as one only where no other node has taken its place.

start-fence.py SETTINGS: a JSON file (see templates/start-fence.json.j2). Exit code 0: start. 1: do not start; the message says why, and what to do.
A node whose live.conf has `replicaof` starts at once: it takes no writes. Otherwise:

- With Sentinels, most of them say who the primary is. Another node: this one follows it. This node: with an AOF it has every write, and starts.
  Without one it has lost what its last snapshot lacks: as long as another node answers, it waits for the Sentinels to promote that one. If no
  other node answers, nobody can be promoted, and it starts.
- In a cluster, a master with slots waits while one of its replicas has more of the replication stream than this node's snapshot: that one takes its
  place, or is made to. Once another node has its slots, or where no replica has more, it starts; the cluster gives it its role.
- Without Sentinels: a node that calls itself the primary is followed. If all nodes answer, none is a primary, and none has more of the replication
  stream than this node's snapshot, it starts.

The file start-as-primary in the data directory allows one start, whatever the others say; the fence removes it.
"""

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cluster import nodes_in  # noqa: E402 - it lies beside this file
from resp import Server, ServerError  # noqa: E402 - so does this one

#: How long a server may take to answer, seconds.
PATIENCE_S = 1.0
#: The start of an RDB file that is read for its replication offset, bytes. The fields that tell it are the first ones.
RDB_HEAD = 4096


class Fence:
    """The decision for one node. `settings` are those of templates/start-fence.json.j2."""

    def __init__(self, settings):
        self.settings = settings
        self.data = Path(settings["data_dir"])
        self.live = self.data / "live.conf"
        self.me = (settings["address"], settings["port"])
        #: This node as nodes.conf has it; None outside a cluster, and before the first start.
        self.node = self._in_nodes_conf() if settings["cluster"] else None

    def run(self):
        """@returns why it may start. @raises SystemExit with why it may not"""
        started, allowed = self.data / "started", self.data / "start-as-primary"
        if allowed.exists():
            allowed.unlink()
            return "start-as-primary allowed this start, whoever else is a primary"
        if self.settings["cluster"]:
            if self.node is None or self.node.master or not self.node.slots:
                return self._pass(started, "it is no master with slots")
        elif any(line.startswith("replicaof ") for line in self.live.read_text().splitlines()):
            return self._pass(started, "it starts as a replica")
        if not self.settings["peers"]:
            return self._pass(started, "it is the only node")
        first = not any(path.exists() for path in [started, self.data / "dump.rdb", self.data / "appendonly.aof"])
        deadline = time.monotonic() + self.settings["wait_seconds"]
        alone_since = None
        while True:
            decided, reason = self._cluster() if self.settings["cluster"] else self._first() if first else self._sentinels() if self.settings["sentinels"] else self._peers()
            # A node that cannot see the others waits as long as a failover takes before it believes that they are down.
            if decided == "alone":
                alone_since = alone_since or time.monotonic()
                decided = "start" if time.monotonic() - alone_since >= self.settings["alone_seconds"] else None
            else:
                alone_since = None
            if isinstance(decided, tuple):
                self._follow(*decided)
            if decided:
                return self._pass(started, reason)
            if time.monotonic() >= deadline:
                promote = " To promote a replica in its place: keydb-cli CLUSTER FAILOVER TAKEOVER on that node." if self.settings["cluster"] else ""
                raise SystemExit(f"{reason}. KeyDB is not started, so that no write is lost; it is tried again. To start it as the primary with the data of its own last snapshot: touch {allowed}. The other nodes then lose what they have beyond it.{promote} See ServerDown.md.")
            time.sleep(0.5)

    def _pass(self, started, reason):
        started.touch()
        return reason

    def _first(self):
        """No data can be lost by the first start: the primary is the node that calls itself so, if there is one."""
        for peer in self.settings["peers"]:
            if self._role(peer).get("role") == "master":
                return (peer["address"], peer["port"]), f"it starts for the first time and follows {peer['name']}, the primary"
        return "start", "it starts for the first time, and no other node is a primary"

    def _in_nodes_conf(self):
        """@returns None where it has not run yet"""
        try:
            return next((node for node in nodes_in((self.data / "nodes.conf").read_text()) if "myself" in node.flags), None)
        except OSError:
            return None

    def _cluster(self):
        if self.settings["appendonly"]:
            return "start", "it is a master of the cluster, and its AOF has its writes"
        seen = {peer["name"]: self._nodes(peer) for peer in self.settings["peers"]}
        for name, nodes in seen.items():
            if any(node.id == self.node.id and not node.slots for node in nodes):
                return "start", f"{name} says that other nodes have its slots"
        if not any(seen.values()):
            return "alone", "no other node of the cluster answers"
        followers = {node.address for nodes in seen.values() for node in nodes if node.master == self.node.id}
        mine = snapshot_offset(self.data / "dump.rdb")
        replicas = [peer for peer in self.settings["peers"] if f"{peer['address']}:{peer['port']}" in followers]
        ahead = [peer["name"] for peer in replicas if int(self._role(peer).get("slave_repl_offset", 0)) > mine]
        if ahead:
            return None, f"{', '.join(ahead)} has writes that this node's last snapshot lacks, and has not taken its slots"
        return "alone", "none of its replicas has more than its last snapshot"

    def _sentinels(self):
        votes = {}
        for sentinel in self.settings["sentinels"]:
            named = self._named(sentinel)
            if named:
                votes.setdefault(named, []).append(sentinel["name"])
        needed = len(self.settings["sentinels"]) // 2 + 1
        named, by = max(votes.items(), key=lambda vote: len(vote[1]), default=(None, []))
        if len(by) < needed:
            return None, f"only {len(by)} of {len(self.settings['sentinels'])} Sentinels agree who the primary is, and {needed} must"
        if named != self.me:
            return named, f"the Sentinels {', '.join(by)} say that {named[0]}:{named[1]} is the primary: it follows that node"
        if self.settings["appendonly"]:
            return "start", f"the Sentinels {', '.join(by)} say that it is the primary, and its AOF has its writes"
        answering = [peer["name"] for peer in self.settings["peers"] if self._role(peer)]
        if answering:
            return None, f"{', '.join(answering)} may have writes that this node's last snapshot lacks, and the Sentinels have not promoted one of them"
        return "alone", "the Sentinels say that it is the primary, and no other node answers"

    def _peers(self):
        roles = {peer["name"]: self._role(peer) for peer in self.settings["peers"]}
        for peer in self.settings["peers"]:
            if roles[peer["name"]].get("role") == "master":
                return (peer["address"], peer["port"]), f"{peer['name']} is the primary now: it follows that node"
        silent = [name for name, role in roles.items() if not role]
        if silent:
            return None, f"{', '.join(silent)} cannot be asked whether it is the primary now"
        mine = snapshot_offset(self.data / "dump.rdb")
        ahead = [name for name, role in roles.items() if int(role.get("slave_repl_offset", 0)) > mine]
        if ahead and not self.settings["appendonly"]:
            return None, f"{', '.join(ahead)} has writes that this node's last snapshot lacks: promote that node (ServerDown.md)"
        return "start", "no other node is a primary"

    def _role(self, peer):
        """INFO replication as a dict; empty where the node does not answer, or loads its data."""
        try:
            with self._login(peer) as server:
                return server.info()
        except (OSError, ServerError):
            return {}

    def _nodes(self, peer):
        """The cluster as that node sees it; empty where it does not answer."""
        try:
            with self._login(peer) as server:
                return nodes_in(server.call("CLUSTER", "NODES"))
        except (OSError, ServerError):
            return []

    def _named(self, sentinel):
        """(address, port) of the primary as a Sentinel says; None where it says none."""
        try:
            with self._login(sentinel) as server:
                found = server.call("SENTINEL", "get-master-addr-by-name", self.settings["name"])
                return (found[0], int(found[1])) if found else None
        except (OSError, ServerError):
            return None

    def _login(self, server):
        return Server(server["address"], server["port"], self.settings["user"], self.settings["password"], self.settings["tls_ca"] or None, timeout=PATIENCE_S)

    def _follow(self, address, port):
        """Appends to live.conf, in place: its owner and mode stay."""
        with self.live.open("a") as live:
            live.write(f"\nreplicaof {address} {port}\n")
            live.flush()
            os.fsync(live.fileno())


def snapshot_offset(path):
    """The replication offset that an RDB file was written at: its auxiliary field `repl-offset`; 0 where it has none, or there is no file."""
    try:
        head = path.open("rb").read(RDB_HEAD)
    except OSError:
        return 0
    at = head.find(b"\x0brepl-offset")
    return rdb_number(head, at + 12) if at >= 0 else 0


def rdb_number(head, at):
    """A string of an RDB file that is a number: as digits after a length of 6 bits, or as an integer of 1, 2 or 4 bytes (rdb.h, RDB_ENC_INT8 to 32)."""
    first = head[at]
    if first >> 6 == 0:
        return int(head[at + 1 : at + 1 + first])
    return int.from_bytes(head[at + 1 : at + 1 + {0xC0: 1, 0xC1: 2, 0xC2: 4}[first]], "little", signed=True)


if __name__ == "__main__":
    print(Fence(json.loads(Path(sys.argv[1]).read_text())).run(), flush=True)
