"""Terraform's inventory of a cluster, taken by Ansible as it is: who has which slots, no HAProxy, no Sentinel, two proxies for each shard."""

import json

import pytest

from test_contract import TERRAFORM, written

EXAMPLE = TERRAFORM / "examples" / "cluster"
INVENTORY = json.loads((EXAMPLE / "tests" / "inventory.json").read_text())["all"]
KEYDB, PROXIES = INVENTORY["children"]["keydb"]["hosts"], INVENTORY["children"]["shadow_proxy"]["hosts"]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return written(tmp_path_factory.mktemp("contract"), EXAMPLE)


def test_a_node_starts_in_cluster_mode_and_has_its_role_from_the_cluster(hosts):
    for name, host in KEYDB.items():
        startup = hosts[name]["startup.conf"].splitlines()
        assert {"port 6390", "cluster-enabled yes", "cluster-config-file nodes.conf", f"cluster-announce-ip {host['infra_address']}"} <= set(startup)
        assert "cluster-node-timeout 5000\n" in hosts[name]["settings.conf"]
        assert "replicaof" not in hosts[name]["live.conf"]
        fence = json.loads(hosts[name]["start-fence.json"])
        assert fence["cluster"] is True and fence["sentinels"] == [] and {each["name"] for each in fence["peers"]} == set(KEYDB) - {name}


def test_every_node_knows_who_gets_which_slots(hosts):
    for name in KEYDB:
        nodes = {each["name"]: each for each in hosts[name]["keydb.json"]["keydb_cluster_nodes"]}
        assert {each: (node["slots"], node["replicates"]) for each, node in nodes.items()} == {
            "keydb-0-1": ("0-5460", ""), "keydb-0-2": ("", "keydb-0-1"), "keydb-1-1": ("5461-10922", ""), "keydb-1-2": ("", "keydb-1-1"), "keydb-2-1": ("10923-16383", ""), "keydb-2-2": ("", "keydb-2-1"),
        }
        assert {each: (node["host"], node["port"]) for each, node in nodes.items()} == {each: (host["infra_address"], 6390) for each, host in KEYDB.items()}


def test_the_source_is_asked_from_the_host_of_a_proxy(hosts):
    told = hosts["keydb-0-1"]["keydb.json"]
    source = told["keydb_cluster_source"]
    assert source["nodes"] == ["10.0.0.11:6379", "10.0.0.12:6379", "10.0.0.13:6379"]
    assert (source["user"], source["login"], source["tls"]) == ("proxy", True, False) and source["via"] in PROXIES
    assert [(each["host"], each["port"], each["login"]) for each in told["keydb_carry_over_sources"]] == [("10.0.0.11", 6379, True), ("10.0.0.12", 6379, True), ("10.0.0.13", 6379, True)]


def test_each_shard_has_a_proxy_and_its_standby(hosts):
    shards = {}
    for name, host in PROXIES.items():
        [peer] = [other for other in PROXIES.values() if other["infra_shard"] == host["infra_shard"] and other != host]
        unit = hosts[name]["shadow-proxy.service"]
        assert f"--shard {host['infra_shard']} --standby --peer http://{peer['infra_address']}:{peer['infra_admin_port']}\n" in unit
        shards[host["infra_shard"]] = host["infra_listen_port"]
    assert shards == {"slots-0": 7000, "slots-5461": 7001, "slots-10923": 7002}


def test_nodes_are_watched_with_their_shard_and_the_source_by_its_nodes(hosts):
    targets = hosts["monitoring"]["monitoring.json"]["prometheus_targets"]
    watched = {(each["labels"]["side"], each["labels"]["instance"], each["labels"]["shard"]) for each in targets["redis-exporter"]}
    assert watched == {
        *{("target", f"keydb-{t}-{n}", shard) for t, shard in enumerate(["slots-0", "slots-5461", "slots-10923"]) for n in [1, 2]},
        *{("source", node, node) for node in ["10.0.0.11:6379", "10.0.0.12:6379", "10.0.0.13:6379"]},
    }
    assert targets["haproxy"] == []
