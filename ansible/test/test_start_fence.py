"""The start fence before real KeyDB nodes and real Sentinels: a node that another one has replaced never starts as the primary."""

import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from conftest import ROOT, free_port
from keydb_nodes import nodes, until  # noqa: F401 - a fixture
from resp import Server

ME, PEER, OTHER = "127.0.0.1", "127.0.0.2", "127.0.0.3"
PROGRAM = ROOT / "roles/keydb/files/start-fence.py"
PASSWORD = "p w\"d"
KEYDB = os.environ.get("KEYDB_SERVER") or shutil.which("keydb-server")


class Target:
    """Up to three addresses at one port; `home` is the data directory of the node that is to start."""

    def __init__(self, directory):
        self.directory, self.home = directory, directory / "me"
        self.port, self.sentinel_port = free_port(), free_port()
        self.servers = {}
        self.home.mkdir()
        (self.home / "live.conf").write_text("# its role\n")

    def start(self, name, address, port, *words):
        home = self.directory / name
        home.mkdir(exist_ok=True)
        self.servers[name] = subprocess.Popen([KEYDB, *words, "--bind", address, "--port", str(port), "--dir", str(home)], cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                return self.ask(address, "PING", port=port)
            except OSError:
                if self.servers[name].poll() is not None:
                    raise AssertionError(f"{name} ended")
                time.sleep(0.05)
        raise TimeoutError(name)

    def node(self, name, address, *words):
        self.start(name, address, self.port, "--server-threads", "1", "--save", "", "--requirepass", PASSWORD, "--masterauth", PASSWORD, *words)

    def sentinel(self, address, primary):
        """One that takes `primary` for the primary, and never changes its mind in a test."""
        name = f"sentinel-{address}"
        (self.directory / name).mkdir()
        conf = self.directory / name / "sentinel.conf"
        conf.write_text(f'requirepass "p w\\"d"\nsentinel monitor t {primary} {self.port} 3\nsentinel down-after-milliseconds t 600000\n')
        self.start(name, address, self.sentinel_port, str(conf), "--sentinel")

    def ask(self, address, *words, port=None):
        with Server(address, port or self.port, None, PASSWORD) as server:
            return server.call(*words)

    def end(self, name):
        self.servers[name].kill()
        self.servers.pop(name).wait()

    def fence(self, peers=(PEER,), sentinels=(), **more):
        """@returns exit code, what it said, and live.conf afterwards"""
        settings = {
            "name": "t", "address": ME, "port": self.port, "data_dir": str(self.home), "appendonly": False, "cluster": False, "user": "", "password": PASSWORD, "tls_ca": "", "wait_seconds": 1, "alone_seconds": 0.5,
            "peers": [{"name": f"node {peer}", "address": peer, "port": self.port} for peer in peers],
            "sentinels": [{"name": f"sentinel {each}", "address": each, "port": self.sentinel_port} for each in sentinels], **more,
        }
        file = self.directory / "fence.json"
        file.write_text(json.dumps(settings))
        done = subprocess.run([sys.executable, "-B", PROGRAM, file], env={**os.environ, "PYTHONPATH": str(ROOT / "plugins/module_utils")}, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, (self.home / "live.conf").read_text()

    def has_run(self):
        (self.home / "started").touch()

    def follows(self, address):
        return f"# its role\n\nreplicaof {address} {self.port}\n"


@pytest.fixture
def target(tmp_path):
    if KEYDB is None:
        pytest.skip("no keydb-server: the start fence was not tried")
    made = Target(tmp_path)
    yield made
    for name in list(made.servers):
        made.end(name)


def test_a_replica_starts_at_once_and_so_does_the_only_node(target):
    target.has_run()
    assert target.fence(peers=[])[:2] == (0, "it is the only node\n")
    (target.home / "live.conf").write_text(f"replicaof {PEER} 1\n")
    assert target.fence() == (0, "it starts as a replica\n", f"replicaof {PEER} 1\n")


def test_the_first_start_needs_nobody_but_follows_a_primary(target):
    code, said, live = target.fence()
    assert (code, live) == (0, "# its role\n") and "first time" in said
    (target.home / "started").unlink()
    target.node("peer", PEER)
    code, said, live = target.fence()
    assert (code, live) == (0, target.follows(PEER)) and f"follows node {PEER}" in said


def test_without_sentinels_it_follows_the_node_that_was_promoted(target):
    target.has_run()
    target.node("peer", PEER)
    target.node("other", OTHER, "--replicaof", PEER, str(target.port))
    assert target.fence(peers=[OTHER, PEER])[0::2] == (0, target.follows(PEER))


def test_without_sentinels_it_does_not_start_while_a_node_cannot_be_asked(target):
    target.has_run()
    code, said, live = target.fence()
    assert (code, live) == (1, "# its role\n")
    assert f"node {PEER} cannot be asked" in said and f"touch {target.home}/start-as-primary" in said
    (target.home / "start-as-primary").touch()
    assert target.fence()[0] == 0
    assert target.fence()[0] == 1, "it is allowed once"


def test_without_sentinels_it_does_not_start_with_less_than_a_replica_has(target):
    """A primary that is killed returns with its last snapshot; one that was stopped has everything."""
    target.node("me", ME)
    target.node("peer", PEER, "--replicaof", ME, str(target.port))
    for _ in range(600):
        if "state=online" in target.ask(ME, "INFO", "replication"):
            break
        time.sleep(0.05)
    assert target.ask(ME, "SET", "k", "1") == "OK" and target.ask(ME, "SAVE") == "OK"
    with Server(ME, target.port, None, PASSWORD) as client:
        assert client.call("SET", "k", "2") == "OK" and client.call("WAIT", "1", "5000") == 1
    target.end("me")
    code, said, _ = target.fence()
    assert code == 1 and f"node {PEER} has writes that this node's last snapshot lacks" in said
    assert target.fence(appendonly=True)[0] == 0, "an AOF has them"


def test_most_sentinels_say_whom_it_follows(target):
    target.has_run()
    for address in [ME, PEER]:
        target.sentinel(address, PEER)
    code, said, live = target.fence(sentinels=[ME, PEER, OTHER])
    assert (code, live) == (0, target.follows(PEER)) and f"say that {PEER}:{target.port} is the primary" in said


def test_fewer_than_most_sentinels_are_not_believed(target):
    target.has_run()
    target.sentinel(ME, ME)
    target.sentinel(PEER, PEER)
    code, said, live = target.fence(sentinels=[ME, PEER, OTHER])
    assert (code, live) == (1, "# its role\n") and "only 1 of 3 Sentinels agree" in said and "2 must" in said


def test_a_killed_primary_waits_until_a_replica_is_promoted(target):
    target.has_run()
    for address in [ME, PEER, OTHER]:
        target.sentinel(address, ME)
    target.node("peer", PEER, "--replicaof", ME, str(target.port))
    code, said, _ = target.fence(sentinels=[ME, PEER, OTHER])
    assert code == 1 and f"node {PEER} may have writes that this node's last snapshot lacks" in said
    assert target.fence(sentinels=[ME, PEER, OTHER], appendonly=True)[0] == 0
    target.end("peer")
    assert target.fence(sentinels=[ME, PEER, OTHER], wait_seconds=5)[0] == 0, "nobody else is there"


class InCluster:
    """Three masters and a replica of the first, which is the one that is to start."""

    def __init__(self, nodes):  # noqa: F811
        self.nodes = nodes
        nodes.start("a", "b", "c", "a2")
        nodes.join({"a": (0, 5460), "b": (5461, 10922), "c": (10923, 16383)})
        nodes.ask("a2", "CLUSTER", "MEET", "127.0.0.1", nodes.ports["a"])
        self.id = nodes.ask("a", "CLUSTER", "MYID")
        until(lambda: nodes.try_ask("a2", "CLUSTER", "REPLICATE", self.id) == "OK", "a2 is a replica of a")
        until(lambda: "master_link_status:up" in nodes.ask("a2", "INFO", "replication"), "a2 is in sync")
        # Without a, the others would never hear of a2.
        until(lambda: all(nodes.ask(name, "CLUSTER", "NODES").count(self.id) == 2 for name in ["b", "c"]), "b and c know a2")
        # Nor would a2 ever hear of them, whose votes it needs: it may know a alone so far.
        until(lambda: "cluster_state:ok" in nodes.ask("a2", "CLUSTER", "INFO"), "a2 knows the slots of all")

    def kill_after_a_snapshot_and_a_write(self):
        assert self.nodes.ask("a", "SET", "bar", "1") == "OK" and self.nodes.ask("a", "SAVE") == "OK"
        with Server("127.0.0.1", self.nodes.ports["a"]) as client:
            assert client.call("SET", "bar", "2") == "OK" and client.call("WAIT", "1", "5000") == 1
        self.nodes.end("a")

    def fence(self, **more):
        settings = {
            "name": "t", "address": "127.0.0.1", "port": self.nodes.ports["a"], "data_dir": str(self.nodes.directory / "a"), "appendonly": False, "cluster": True, "user": "", "password": "", "tls_ca": "", "wait_seconds": 0.2,
            "alone_seconds": 0.5, "sentinels": [], "peers": [{"name": name, "address": "127.0.0.1", "port": port} for name, port in self.nodes.ports.items() if name != "a"], **more,
        }
        (self.nodes.directory / "a" / "live.conf").touch()
        file = self.nodes.directory / "fence.json"
        file.write_text(json.dumps(settings))
        done = subprocess.run([sys.executable, "-B", PROGRAM, file], env={**os.environ, "PYTHONPATH": str(ROOT / "plugins/module_utils")}, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def in_cluster(nodes):  # noqa: F811
    return InCluster(nodes)


def test_in_a_cluster_a_killed_master_waits_until_its_replica_has_its_slots(in_cluster):
    # A node that has not joined yet knows nothing of it.
    in_cluster.nodes.start("new")
    in_cluster.kill_after_a_snapshot_and_a_write()
    code, said = in_cluster.fence()
    assert code == 1 and "a2 has writes that this node's last snapshot lacks, and has not taken its slots" in said and "CLUSTER FAILOVER TAKEOVER" in said
    assert in_cluster.fence(appendonly=True)[0] == 0, "an AOF has them"
    code, said = in_cluster.fence(wait_seconds=20)
    assert code == 0 and "says that other nodes have its slots" in said, said
    in_cluster.nodes.start("a")
    until(lambda: "master_link_status:up" in in_cluster.nodes.ask("a", "INFO", "replication"), "a follows a2")
    assert in_cluster.nodes.ask("a2", "GET", "bar") == "2"
    assert in_cluster.fence() == (0, "it is no master with slots\n"), "a replica starts at once"


def test_in_a_cluster_a_master_that_is_started_at_once_would_lose_writes(in_cluster):
    """What the fence prevents: its replica takes over what its snapshot has."""
    in_cluster.kill_after_a_snapshot_and_a_write()
    in_cluster.nodes.start("a")
    until(lambda: in_cluster.nodes.try_ask("a", "GET", "bar") is not None, "a is the master still")
    assert in_cluster.nodes.ask("a", "GET", "bar") == "1"


def test_in_a_cluster_a_master_starts_where_nobody_has_more(in_cluster):
    assert in_cluster.nodes.ask("a", "SET", "bar", "1") == "OK"
    until(lambda: in_cluster.nodes.ask("a2", "DBSIZE") == 1, "a2 has it")
    in_cluster.nodes.end("a2")
    assert in_cluster.nodes.ask("a", "SAVE") == "OK"
    in_cluster.nodes.end("a")
    assert in_cluster.fence(wait_seconds=5) == (0, "none of its replicas has more than its last snapshot\n")
    in_cluster.nodes.end("b", "c")
    assert in_cluster.fence(wait_seconds=5) == (0, "no other node of the cluster answers\n")
