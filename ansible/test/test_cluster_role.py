"""A KeyDB cluster as the role makes it, with TLS and its own users, on six nodes started as their units start them; then a seventh."""

import json

import pytest

from host import LACKS
from keydb_nodes import until
from resp import ServerError
from test_node import KEYDB, PASSWORDS, Target, certificates

pytestmark = pytest.mark.long

SLOTS = {"k0": "0-5460", "k1": "5461-10922", "k2": "10923-16383"}
ADDRESSES = {f"{name}-{n}": f"127.0.0.{10 * t + 10 + n}" for t, name in enumerate([*SLOTS, "k3"]) for n in [1, 2]}
CLUSTER = [{"ansible.builtin.include_role": {"name": "keydb", "tasks_from": "cluster"}}]
APP = {"user": "app", "password": PASSWORDS["keydb-app"]["use"]}
HAND_OVER = [{"ansible.builtin.include_role": {"name": "keydb", "tasks_from": "hand-over"}}]


def targets(**more):
    return {name: {"name": name, "writer_port": 1, "any_port": 2, "nodes": [f"{name}-1", f"{name}-2"], "primary": f"{name}-1", "pinned": False, "shards": [], "slots": slots} for name, slots in {**SLOTS, **more}.items()}


class Nodes(Target):
    """The nodes of a cluster."""

    def cluster(self, *more, **variables):
        """The tasks of the cluster on one node, for all. @returns names of the tasks that changed something, and the output"""
        code, changed, told = self.play("k0-1", CLUSTER, *more, **variables)
        assert code == 0, told
        return changed, " ".join(told.split())

    def bring_up(self, *names, **variables):
        for name in names:
            assert self.configure(name, **variables)
            self.start(name)

    def seen(self):
        """Role and slots of each node, as they say themselves."""
        return {name: next((words[2].split(",")[1], *words[8:]) for words in (line.split() for line in self.ask(name, "CLUSTER", "NODES").splitlines()) if "myself" in words[2]) for name in self.running}

    @property
    def running(self):
        return [name for name, node in self.nodes.items() if node.servers]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    if KEYDB is None:
        pytest.skip("no keydb-server: the role's cluster was not tried")
    directory = tmp_path_factory.mktemp("cluster")
    try:
        made = Nodes(directory, certificates(directory / "tls", ADDRESSES), ADDRESSES, targets(k3=""))
    except OSError as problem:
        pytest.skip(f"{LACKS}: {problem}")
    made.bring_up(*[name for name in ADDRESSES if not name.startswith("k3")], infra_targets=targets())
    yield made
    for node in made.nodes.values():
        node.end()


def test_it_is_made_once(nodes):
    changed, told = nodes.cluster("--check", infra_targets=targets())
    assert changed == ["Make the cluster, or have new nodes join it"] and "there is no cluster yet" in told
    assert all(nodes.ask(name, "CLUSTER", "NODES").count("\n") == 1 for name in nodes.running)
    changed, told = nodes.cluster(infra_targets=targets())
    assert changed == ["Make the cluster, or have new nodes join it"]
    assert nodes.seen() == {f"{name}-{n}": ("master", slots) if n == 1 else ("slave",) for name, slots in SLOTS.items() for n in [1, 2]}
    assert nodes.ask("k2-1", "SET", "foo", "1", **APP) == "OK"


def test_a_second_run_changes_nothing(nodes):
    before, epochs = nodes.seen(), nodes.ask("k0-1", "CLUSTER", "INFO").split("cluster_stats")[0]
    live = {name: nodes.nodes[name].run("cat", "/var/lib/keydb/live.conf", "/var/lib/keydb/nodes.conf") for name in nodes.running}
    for name in nodes.running:
        assert nodes.configure(name, infra_targets=targets()) == []
    changed, told = nodes.cluster(infra_targets=targets())
    assert changed == [] and "a cluster of 6 nodes" in told and "the slots 0-16383 and 1 keys" in told
    assert nodes.seen() == before and nodes.ask("k0-1", "CLUSTER", "INFO").split("cluster_stats")[0] == epochs
    assert all("replicaof" not in text and "myself" in text for text in live.values())


def test_a_master_hands_over_before_its_restart_and_the_run_after_it_changes_nothing(nodes):
    code, _, told = nodes.play("k2-1", HAND_OVER, infra_targets=targets())
    assert code == 0, told
    assert nodes.seen()["k2-1"] == ("slave",) and nodes.seen()["k2-2"] == ("master", SLOTS["k2"])
    assert nodes.ask("k2-2", "GET", "foo") == "1"
    assert nodes.cluster(infra_targets=targets())[0] == []


def test_a_master_without_a_replica_is_not_handed_over(nodes):
    nodes.ask("k2-1", "CONFIG", "SET", "masterauth", "wrong")
    nodes.ask("k2-2", "CLIENT", "KILL", "TYPE", "replica")
    until(lambda: "slave0" not in nodes.ask("k2-2", "INFO", "replication"), "the replica is cut off")
    code, _, told = nodes.play("k2-2", HAND_OVER, infra_targets=targets())
    assert code != 0 and "k2-2 has the slots 10923-16383 and no replica that is in sync" in " ".join(told.split())
    nodes.ask("k2-1", "CONFIG", "SET", "masterauth", PASSWORDS["keydb-replication"]["use"])
    until(lambda: "master_link_status:up" in nodes.ask("k2-1", "INFO", "replication"), "it is back")


def test_a_target_more_joins_as_an_empty_master_with_its_replica(nodes):
    nodes.bring_up("k3-1", "k3-2")
    before = nodes.seen()
    changed, told = nodes.cluster()
    assert changed == ["Make the cluster, or have new nodes join it"] and "k3-2" in told
    assert nodes.seen() == {**before, "k3-1": ("master",), "k3-2": ("slave",)}
    assert nodes.cluster()[0] == []


def test_the_bus_speaks_tls_and_applications_may_not_change_the_cluster(nodes):
    assert nodes.ask("k0-1", "CONFIG", "GET", "tls-cluster") == ["tls-cluster", "yes"]
    with pytest.raises(ServerError, match="NOPERM"):
        nodes.ask("k0-1", "CLUSTER", "RESET", **APP)


def test_the_fence_of_a_master_asks_the_whole_cluster(nodes):
    assert nodes.configure("k0-1") == ["Write whom the start fence asks"]
    fence = json.loads(nodes.nodes["k0-1"].run("cat", "/etc/keydb/start-fence.json"))
    assert fence["cluster"] is True and sorted(each["name"] for each in fence["peers"]) == sorted(set(nodes.running) - {"k0-1"})
