"""The guardrail refuses what the plan's own check refuses: one rule, in two languages."""

import json
import re
import shutil
import subprocess

import pytest

from conftest import ROOT, evaluate, of_roles, refusals

REPOSITORY = ROOT.parent
#: name, workload, and whether active-active nodes may have it
WORKLOADS = [
    ("counter", {"class": "counter"}, False),
    ("leaderboard", {"class": "leaderboard"}, False),
    ("counter with one writer", {"class": "counter", "writer": "eu"}, True),
    ("leaderboard with one writer", {"class": "leaderboard", "writer": "us"}, True),
    ("counter of the library", {"class": "counter", "counterLayout": "library"}, True),
    ("counter in keys per region", {"class": "counter", "counterLayout": "per-region"}, True),
    ("counter with the layout spelled out", {"class": "counter", "counterLayout": "plain"}, False),
    ("sessions", {"class": "read-mostly"}, True),
    ("no class", {}, True),
]
ACTIVE = {"mode": "active-active", "regions": ["eu", "us"]}


def plan(workload, topology=ACTIVE, default=None):
    shard = {"name": "s", "listen": "redis://127.0.0.1:6400", "source": "redis://127.0.0.1:6379", "target": "redis://127.0.0.1:6390"}
    if topology is ACTIVE:
        shard["region"] = "eu"
    whole = {"version": 1, "name": "p", "shards": [shard], "topology": topology, "workloads": [{"name": "w", "keys": ["w:*"], **workload}]}
    return {**whole, "default": default} if default else whole


#: By name: variables of a node, and what the role says of it. All in one run, for Ansible takes a second to start.
REPLICATED = {"mode": "primary-replica"}
NODES = {
    "counter": ({"keydb_plan": plan({"class": "counter"})}, "w: class counter or leaderboard, and topology.mode is active-active.*Give the workload one writer"),
    "counter by default": ({"keydb_plan": plan({}, default={"class": "counter"})}, "default: class counter"),
    "counter on primary and replica": ({"keydb_plan": plan({"class": "counter"}, REPLICATED), "keydb_initial_role": "primary"}, None),
    "aof": ({"keydb_plan": plan({}), "keydb_appendonly": True}, "drops everything that it had received"),
    "primary on active-active": ({"keydb_plan": plan({}), "keydb_initial_role": "primary"}, "keydb_initial_role is primary"),
    "active on primary and replica": ({"keydb_plan": plan({}, REPLICATED)}, "keydb_initial_role is active"),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    tasks = [{"ansible.builtin.include_tasks": str(ROOT / "roles/keydb/tasks/assertions.yml")}]
    return refusals(tmp_path_factory.mktemp("nodes"), tasks, {name: given for name, (given, _) in NODES.items()}, **{**of_roles("keydb"), "keydb_initial_role": "active"})


@pytest.mark.parametrize("node", NODES)
def test_a_node_is_refused_in_plain_words_or_is_fine(said, node):
    wanted = NODES[node][1]
    assert said[node] is None if wanted is None else re.search(wanted, said[node] or "not refused"), said[node]


@pytest.mark.parametrize("name,workload,allowed", WORKLOADS, ids=[each[0] for each in WORKLOADS])
def test_counters_on_active_active(name, workload, allowed):
    assert evaluate("keydb_lossy_workloads", {**of_roles("keydb"), "keydb_plan": plan(workload)}) == ([] if allowed else ["w"])


@pytest.mark.skipif(not (REPOSITORY / "dist/shadow-proxy/src/main.js").exists(), reason="the proxy is not built: npm run build")
@pytest.mark.skipif(not (REPOSITORY / "shadow-proxy/src/plan/counters.ts").exists(), reason="the plan knows no writer and no counterLayout yet: the two rules were not compared")
@pytest.mark.parametrize("name,workload,allowed", WORKLOADS, ids=[each[0] for each in WORKLOADS])
def test_the_plan_says_the_same(tmp_path, name, workload, allowed):
    file = tmp_path / "migration.yaml"
    file.write_text(json.dumps(plan(workload)))
    done = subprocess.run([shutil.which("node"), REPOSITORY / "dist/shadow-proxy/src/main.js", "--plan", file, "--check"], capture_output=True, text=True)
    assert (done.returncode == 0) == allowed, done.stdout + done.stderr


#: By file with tasks: variables, and what they say before anything is installed.
NOT_PINNED = {
    "migration_kit/tasks/node-repository.yml": ({}, "migration_kit_node_repository_key_checksum is not set: download https://deb.nodesource.com/"),
    "keydb/tasks/install-repository.yml": ({}, "keydb_repository_key_checksum is not set"),
    "keydb/tasks/install-package.yml": ({}, "set keydb_package_url"),
    "keydb/tasks/install-binary.yml": ({"keydb_binary_src": "/bin/true", "keydb_binary_checksum": "sha256:" + "0" * 64}, "is not the file that keydb_binary_checksum"),
    "keydb/tasks/install-container.yml": ({"keydb_container_image": "eqalpha/keydb:latest"}, "has to carry its digest"),
}


@pytest.fixture(scope="module")
def installing(tmp_path_factory):
    tasks = [{"ansible.builtin.include_tasks": "{{ file }}"}]
    cases = {file: {**given, "file": str(ROOT / "roles" / file)} for file, (given, _) in NOT_PINNED.items()}
    return refusals(tmp_path_factory.mktemp("installing"), tasks, cases, **of_roles("keydb", "migration_kit"))


@pytest.mark.parametrize("file", NOT_PINNED)
def test_what_is_not_pinned_is_not_installed(installing, file):
    assert NOT_PINNED[file][1] in " ".join((installing[file] or "not refused").split())
