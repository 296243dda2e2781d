"""A cluster of real KeyDB nodes: made once, left as it is afterwards, joined by new nodes, and what is refused by name."""

import json
import subprocess

import pytest

from keydb_nodes import REDIS, nodes, until  # noqa: F401 - a fixture
from conftest import ROOT, module, render
from resp import Server

MASTERS = {"a": "0-5460", "b": "5461-10922", "c": "10923-16383"}
REPLICAS = {"a2": "a", "b2": "b", "c2": "c"}
SIX = [*MASTERS, *REPLICAS]
#: Keys in slots of a, b and c.
KEYS = {"a": "bar", "b": "test", "c": "foo"}


@pytest.fixture
def make(nodes):  # noqa: F811
    """Runs the module. @returns what it gives back"""

    def run(*names, slots=MASTERS, replicas=REPLICAS, check=False, more=(), **others):
        wanted = [{"name": name, "host": "127.0.0.1", "port": nodes.ports[name], "slots": slots.get(name, ""), "replicates": replicas.get(name, "")} for name in names or SIX]
        return module("keydb_cluster", check=check, nodes=[*wanted, *more], **{"timeout": 20, **others})

    return run


@pytest.fixture
def six(nodes, make):  # noqa: F811
    """Three masters and three replicas, with a key in each."""
    nodes.start(*SIX)
    assert make()["changed"]
    for master, key in KEYS.items():
        assert nodes.ask(master, "SET", key, master) == "OK"
    return nodes


def refused(result, *words):
    assert result["failed"], result
    for word in words:
        assert word in result["msg"], result["msg"]


def test_a_cluster_is_made_once_and_a_second_run_changes_nothing(nodes, make):  # noqa: F811
    nodes.start(*SIX)
    foretold = make(check=True)
    assert foretold["changed"] and foretold["assigns"] and "there is no cluster yet" in foretold["found"]
    assert all(nodes.ask(name, "CLUSTER", "NODES").count("\n") == 1 for name in SIX), "check mode does nothing"
    done = make()
    assert done["changed"] and done["actions"] == foretold["actions"] and len(done["actions"]) == 5 + 3 + 3
    assert done["masters"] == MASTERS
    for name in SIX:
        assert "cluster_state:ok" in nodes.ask(name, "CLUSTER", "INFO")
    assert nodes.ask("a2", "CLUSTER", "REPLICAS", nodes.ask("a", "CLUSTER", "MYID"))[0].startswith(nodes.ask("a2", "CLUSTER", "MYID"))
    for master, key in KEYS.items():
        assert nodes.ask(master, "SET", key, master) == "OK"
    before = {name: nodes.described(name) for name in SIX}
    again = make()
    assert not again["changed"] and again["actions"] == [] and not again["assigns"]
    assert "a cluster of 6 nodes" in again["found"] and "the slots 0-16383 and 3 keys" in again["found"]
    assert {name: nodes.described(name) for name in SIX} == before, "no slot, no role and no epoch is another"


def test_a_run_that_was_interrupted_goes_on(nodes, make):  # noqa: F811
    nodes.start(*SIX)
    nodes.ask("b", "CLUSTER", "MEET", "127.0.0.1", nodes.ports["a"])
    nodes.ask("a", "CLUSTER", "ADDSLOTS", *range(5461))
    until(lambda: nodes.ask("b", "CLUSTER", "NODES").count("0-5460") == 1, "b knows the slots of a")
    done = make()
    assert done["changed"] and "slots 0-5460 and 0 keys" in done["found"]
    assert done["masters"] == MASTERS


def test_a_failover_is_not_undone(six, make):
    six.end("a")
    until(lambda: "role:master" in six.ask("a2", "INFO", "replication"), "a2 takes the place of a")
    six.start("a")
    until(lambda: "master_link_status:up" in six.ask("a", "INFO", "replication"), "a follows it")
    again = make()
    assert not again["changed"] and again["masters"] == {"a2": "0-5460", "b": "5461-10922", "c": "10923-16383"}
    assert six.ask("a2", "GET", KEYS["a"]) == "a"


def test_a_node_joins_as_a_replica_of_who_is_master_now_and_another_without_slots(six, make):
    six.ask("b2", "CLUSTER", "FAILOVER")
    until(lambda: "role:slave" in six.ask("b", "INFO", "replication"), "b2 is the master")
    six.start("b3", "d")
    before = {node[3:] for node in six.described("a") if node[3:]}
    joined = make(*SIX, "b3", "d", replicas={**REPLICAS, "b3": "b"})
    assert [action.partition(" (")[0] for action in joined["actions"]] == ["b3", "d", "b3"] and "a replica of b2" in joined["actions"][2]
    assert joined["masters"] == {"a": "0-5460", "b2": "5461-10922", "c": "10923-16383", "d": ""}
    assert {node[3:] for node in six.described("a") if node[3:]} == before, "no slot moves"
    with Server("127.0.0.1", six.ports["b3"]) as replica:
        replica.call("READONLY")
        assert replica.call("GET", KEYS["b"]) == "b"
    assert not make(*SIX, "b3", "d", replicas={**REPLICAS, "b3": "b"})["changed"]


def test_a_node_of_another_cluster_is_refused_by_name(six, make):
    before = six.described("a")
    six.start("x", "y")
    six.ask("x", "CLUSTER", "MEET", "127.0.0.1", six.ports["y"])
    until(lambda: six.ask("x", "CLUSTER", "NODES").count("\n") == 2 and "handshake" not in six.ask("x", "CLUSTER", "NODES"), "x is in a cluster with y")
    refused(make(*SIX, "x"), "Nothing is changed: x (127.0.0.1:", "is in a cluster with 127.0.0.1:%d" % six.ports["y"])
    six.ask("x", "CLUSTER", "ADDSLOTS", 1)
    refused(make(*SIX, "x", "y"), "the nodes are in 2 clusters", "(a, b, c, a2, b2, c2) with the slots 0-16383 and 3 keys", "with the slots 1 and 0 keys")
    assert six.described("a") == before


def test_a_node_that_has_keys_of_its_own_is_refused_by_name(six, make):
    six.start("d")
    six.ask("d", "CLUSTER", "ADDSLOTS", *range(16384))
    until(lambda: six.try_ask("d", "SET", "mine", "1") == "OK", "d is a cluster of its own")
    refused(make(*SIX, "d"), "the nodes are in 2 clusters", "(d) with the slots 0-16383 and 1 keys")
    six.ask("d", "CLUSTER", "DELSLOTS", *range(16384))
    refused(make(*SIX, "d"), "d (127.0.0.1:%d) holds 1 keys, and not in the cluster" % six.ports["d"])
    assert six.ask("d", "CLUSTER", "COUNTKEYSINSLOT", six.ask("d", "CLUSTER", "KEYSLOT", "mine")) == 1


def test_slots_that_no_node_has_are_not_given_away_while_there_are_keys(six, make):
    six.ask("c", "CLUSTER", "DELSLOTS", 16383)
    for name in SIX:
        six.try_ask(name, "CLUSTER", "DELSLOTS", 16383)
    refused(make(), "no node has the slots 16383 in a cluster of 6 nodes", "and 3 keys")
    assert "16383" not in {word for node in six.described("c") for word in node}


def test_a_node_that_does_not_answer_or_is_no_cluster_is_named(nodes, make):  # noqa: F811
    nodes.start("a")
    nodes.start("b", mode="no")
    refused(make("a", "b", replicas={}), "b (127.0.0.1:%d) runs without cluster mode" % nodes.ports["b"])
    gone = {"name": "c", "host": "127.0.0.1", "port": 1}
    refused(make("a", slots={"a": "0-16383"}, more=[gone], timeout=1), "c (127.0.0.1:1) cannot be asked", "Every node must run")


@pytest.mark.parametrize(
    "slots,replicas,told",
    [
        ({"a": "0-8191", "b": "8191-16383"}, {}, "the slots 8191 are given to a and to b"),
        ({"a": "0-8191", "b": "8193-16383"}, {}, "the inventory gives the slots 8192 to no node"),
        ({"a": "0-16384"}, {}, "the slots of a: 0-16384 is no range of slots from 0 to 16383"),
        ({"a": "0-16383"}, {"b": "z"}, "b is to replicate z"),
    ],
)
def test_an_inventory_that_contradicts_itself_is_refused(nodes, make, slots, replicas, told):  # noqa: F811
    nodes.start("a", "b")
    refused(make("a", "b", slots=slots, replicas=replicas), told)
    assert nodes.ask("a", "CLUSTER", "NODES").count("\n") == 1


def test_a_master_of_the_source_is_not_divided(nodes, make):  # noqa: F811
    nodes.start("a", "b")
    told = make("a", "b", slots={"a": "0-8191", "b": "8192-16383"}, replicas={}, source_slots=["0-5460", "5461-10922", "10923-16383"])
    refused(told, "one master of the source has the slots 5461-10922", "a (127.0.0.1:", "b (127.0.0.1:", "2 proxies instead of one", "keydb_cluster_unaligned")
    assert nodes.ask("a", "CLUSTER", "NODES").count("\n") == 1
    assert make("a", "b", slots={"a": "0-10922", "b": "10923-16383"}, replicas={}, source_slots=["0-5460", "5461-10922", "10923-16383"])["changed"]


def test_the_layout_of_a_source_is_read_from_the_first_node_that_answers(six):
    seen = module("cluster_layout", nodes=["127.0.0.1:1", "127.0.0.1:%d" % six.ports["c2"]])
    assert seen["masters"] == {"127.0.0.1:%d" % six.ports[name]: slots for name, slots in MASTERS.items()}
    refused(module("cluster_layout", nodes=["127.0.0.1:1"]), "no node says which slots it has (127.0.0.1:1:")


@pytest.mark.parametrize("cluster,allowed", [(True, True), (False, False)])
def test_applications_may_ask_a_cluster_where_slots_are_and_nothing_else_of_it(nodes, cluster, allowed):  # noqa: F811
    """KeyDB counts all of CLUSTER as @admin and @dangerous, which applications may not run; clients of a cluster cannot do without these."""
    names = ["keydb-admin", "keydb-replication", "keydb-proxy", "keydb-exporter", "keydb-haproxy", "keydb-sentinel", "keydb-app"]
    users = render("keydb", "users.acl.j2", keydb_cluster=cluster, keydb_passwords={name: {"use": name, "accept": [name]} for name in names})
    nodes.start("a")
    for line in users.splitlines():
        if line.startswith("user app "):
            assert nodes.ask("a", "ACL", "SETUSER", *line.split()[1:]) == "OK"
    with Server("127.0.0.1", nodes.ports["a"], "app", "keydb-app") as server:
        for words in [["SLOTS"], ["NODES"], ["INFO"], ["MYID"], ["KEYSLOT", "k"]]:
            assert ("NOPERM" not in str(attempt(server, "CLUSTER", *words))) == allowed, words
        for words in [["FAILOVER"], ["RESET"], ["DELSLOTS", "1"], ["FORGET", "x"]]:
            assert "NOPERM" in str(attempt(server, "CLUSTER", *words)), words


@pytest.mark.skipif(not (ROOT.parent / "shadow-proxy/src/plan/cluster.ts").exists() or not (ROOT.parent / "dist/shadow-proxy/src/main.js").exists(), reason="the proxy knows no cluster, or is not built: its shards were not compared")
@pytest.mark.parametrize("source,fits", [({"r1": (0, 5460), "r2": (5461, 16383)}, True), ({"r1": (0, 5461), "r2": (5462, 16383)}, False)])
def test_the_shards_that_the_proxy_derives_must_have_proxies(play, nodes, source, fits):  # noqa: F811
    nodes.start(*source, program=REDIS)
    nodes.join(source)
    nodes.start("a", "b")
    nodes.join({"a": (0, 5460), "b": (5461, 16383)})
    plan = {"version": 1, "name": "p", "cluster": {"source": f"redis://127.0.0.1:{nodes.ports['r2']}", "target": f"redis://127.0.0.1:{nodes.ports['a']}", "listen": "redis://127.0.0.1:7000"}, "workloads": [{"name": "w", "keys": ["*"]}]}
    (nodes.directory / "plan.yaml").write_text(json.dumps(plan))
    checked = subprocess.run(["node", ROOT.parent / "dist/shadow-proxy/src/main.js", "--plan", nodes.directory / "plan.yaml", "--check"], capture_output=True, text=True, check=True).stdout
    tasks = [{"ansible.builtin.include_tasks": str(ROOT / "roles/shadow_proxy/tasks/shards.yml")}]
    code, output = play(tasks, shadow_proxy_check={"stdout": checked}, shadow_proxy_cluster_shards=["slots-5461", "slots-0"])
    assert (code == 0) == fits, output
    if not fits:
        assert "give the shards slots-0, slots-5461, slots-5462, and the inventory has proxies of slots-5461, slots-0" in output


def attempt(server, *words):
    try:
        return server.call(*words)
    except Exception as error:  # noqa: BLE001 - its text is what is looked at
        return error
