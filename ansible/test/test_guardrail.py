"""The guardrail refuses what the plan's own check refuses: one rule, in two languages."""

import json
import shutil
import subprocess

import pytest

from conftest import ROOT

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


def assertion(play, a_plan, role="active", **variables):
    tasks = [
        {"ansible.builtin.include_vars": str(ROOT / "roles/keydb/defaults/main.yml")},
        {"ansible.builtin.include_vars": str(ROOT / "roles/keydb/vars/main.yml")},
        {"ansible.builtin.include_tasks": str(ROOT / "roles/keydb/tasks/assertions.yml")},
    ]
    return play(tasks, keydb_plan=a_plan, keydb_initial_role=role, **variables)


def test_counters_on_active_active(play):
    """All in one run, for Ansible takes a second to start: of each plan, which workloads the role would refuse."""
    tasks = [
        {"ansible.builtin.include_vars": str(ROOT / "roles/keydb/vars/main.yml")},
        {"ansible.builtin.debug": {"msg": "<{{ item.name }}: {{ keydb_lossy_workloads | join(',') }}>"}, "loop": "{{ cases }}", "vars": {"keydb_plan": "{{ item.plan }}"}},
    ]
    code, output = play(tasks, cases=[{"name": name, "plan": plan(workload)} for name, workload, _ in WORKLOADS])
    assert code == 0, output
    for name, _, allowed in WORKLOADS:
        assert f"<{name}: {'' if allowed else 'w'}>" in output, name


def test_a_counter_is_refused_in_plain_words(play):
    code, output = assertion(play, plan({"class": "counter"}))
    assert code != 0 and "w: class counter or leaderboard, and topology.mode is active-active" in output
    assert "Give the workload one writer" in output


@pytest.mark.skipif(not (REPOSITORY / "dist/shadow-proxy/src/main.js").exists(), reason="the proxy is not built: npm run build")
@pytest.mark.skipif(not (REPOSITORY / "shadow-proxy/src/plan/counters.ts").exists(), reason="the plan knows no writer and no counterLayout yet: the two rules were not compared")
@pytest.mark.parametrize("name,workload,allowed", WORKLOADS, ids=[each[0] for each in WORKLOADS])
def test_the_plan_says_the_same(tmp_path, name, workload, allowed):
    file = tmp_path / "migration.yaml"
    file.write_text(json.dumps(plan(workload)))
    done = subprocess.run([shutil.which("node"), REPOSITORY / "dist/shadow-proxy/src/main.js", "--plan", file, "--check"], capture_output=True, text=True)
    assert (done.returncode == 0) == allowed, done.stdout + done.stderr


def test_the_keys_that_no_workload_names_count_too(play):
    code, output = assertion(play, plan({}, default={"class": "counter"}))
    assert code != 0 and "default: class counter" in output


def test_a_counter_on_primary_and_replica_is_fine(play):
    assert assertion(play, plan({"class": "counter"}, {"mode": "primary-replica"}), role="primary")[0] == 0


def test_an_aof_is_refused_on_active_active(play):
    code, output = assertion(play, plan({}), keydb_appendonly=True)
    assert code != 0 and "drops everything that it had received" in output


@pytest.mark.parametrize("role,topology", [("primary", ACTIVE), ("active", {"mode": "primary-replica"})])
def test_the_role_of_a_node_fits_the_topology(play, role, topology):
    code, output = assertion(play, plan({}, topology), role=role)
    assert code != 0 and f"keydb_initial_role is {role}" in output


def test_node_comes_from_a_repository_whose_key_is_pinned(play):
    tasks = [
        {"ansible.builtin.include_vars": str(ROOT / "roles/migration_kit/defaults/main.yml")},
        {"ansible.builtin.include_tasks": str(ROOT / "roles/migration_kit/tasks/node-repository.yml")},
    ]
    code, output = play(tasks)
    assert code != 0 and "migration_kit_node_repository_key_checksum is not set: download https://deb.nodesource.com/" in " ".join(output.split())


@pytest.mark.parametrize(
    "method,told",
    [("repository", "keydb_repository_key_checksum is not set"), ("package", "set keydb_package_url"), ("binary", "is not the file that keydb_binary_checksum"), ("container", "has to carry its digest")],
)
def test_what_is_not_pinned_is_not_installed(play, method, told):
    tasks = [
        {"ansible.builtin.include_vars": str(ROOT / "roles/keydb/defaults/main.yml")},
        {"ansible.builtin.include_tasks": str(ROOT / f"roles/keydb/tasks/install-{method}.yml")},
    ]
    code, output = play(tasks, keydb_binary_src="/bin/true", keydb_binary_checksum="sha256:" + "0" * 64, keydb_container_image="eqalpha/keydb:latest")
    assert code != 0 and told in " ".join(output.split())
