"""Terraform's inventory, taken by Ansible as it is. Terraform's own test holds the file equal to its output, so neither side can drift.

Everything that follows from the inventory and the plan alone is worked out here: the arguments of every role against its specs, and the files.
"""

import json
import re
import sys

import pytest
import yaml

from conftest import ROOT, ansible, of_roles, render, results

TERRAFORM = ROOT.parent / "terraform"
EXAMPLE = TERRAFORM / "examples" / "complete"
INVENTORY = json.loads((EXAMPLE / "tests" / "inventory.json").read_text())["all"]
HOSTS = {name: host for group in INVENTORY["children"].values() for name, host in group.get("hosts", {}).items()}
#: What Terraform says for people and for other tools: no role reads it.
FOR_OTHERS = {"infra_name", "infra_zone", "infra_instance_id", "infra_cpus", "infra_memory_bytes", "infra_domain", "infra_names", "infra_listen_port"}

ROLES = {
    "keydb": ["host_tuning", "keydb", "redis_exporter", "bucket_upload"],
    "sentinel": ["sentinel"],
    "haproxy": ["haproxy"],
    "shadow_proxy": ["host_tuning", "migration_kit", "shadow_proxy", "bucket_upload"],
    "monitoring": ["host_tuning", "redis_exporter", "prometheus", "grafana", "alertmanager"],
    "loadgen": ["host_tuning", "migration_kit", "loadgen"],
}
FILES = {
    "keydb": ["keydb/users.acl", "keydb/startup.conf", "keydb/settings.conf", "keydb/live.conf", "keydb/start-fence.json", "redis_exporter/redis-exporter.env", "bucket_upload/snapshot.sh"],
    "sentinel": ["sentinel/sentinel.conf", "sentinel/sentinel.acl", "sentinel/sentinel-startup.conf"],
    "haproxy": ["haproxy/haproxy.cfg"],
    "shadow_proxy": ["shadow_proxy/shadow-proxy.service", "bucket_upload/report.sh"],
    "monitoring": ["redis_exporter/redis-exporter.env", "grafana/datasource.yml"],
    "loadgen": [],
}
#: Variables that are looked at as such.
SEEN = {"keydb": ["keydb_carry_over_sources", "keydb_cluster_nodes", "keydb_cluster_source"], "monitoring": ["prometheus_targets"], "shadow_proxy": ["shadow_proxy_secret_files", "shadow_proxy_admin_url"]}


def play_of(group):
    """Each role's arguments against its specs, then what its files would have."""
    specs = [str(ROOT / "roles" / role / "meta" / "argument_specs.yml") for role in ROLES[group]]
    files = {file.split("/")[1]: "lookup('ansible.builtin.template', '%s.j2')" % (ROOT / "roles" / file.replace("/", "/templates/")) for file in FILES[group]}
    seen = {name: name for name in ["host_tuning_data_mount", *SEEN.get(group, [])]}
    said = {**files, f"{group}.json": dictionary(seen)}
    tasks = [
        {"ansible.builtin.validate_argument_spec": {"argument_spec": "{{ (lookup('ansible.builtin.file', item) | from_yaml).argument_specs.main.options }}"}, "loop": specs},
        *([{"ansible.builtin.include_tasks": str(ROOT / "roles/keydb/tasks/assertions.yml")}] if group == "keydb" else []),
        {"ansible.builtin.debug": {"msg": "{{ %s }}" % dictionary(said)}},
    ]
    return {"hosts": group, "gather_facts": False, "vars_files": [str(ROOT / f"roles/{role}/vars/main.yml") for role in ["keydb", "sentinel"]], "tasks": tasks}


def dictionary(expressions):
    return "{%s}" % ", ".join(f"'{name}': {expression}" for name, expression in expressions.items())


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    return written(tmp_path_factory.mktemp("contract"), EXAMPLE)


#: All hosts are this machine: what it has is looked at once.
FACTS = {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.setup": {"gather_subset": ["!all", "hardware"]}, "run_once": True}]}


def written(root, example):
    """By host, by name of the file: what Ansible would write there for the inventory and the plan of an example. Instead of `GROUP.json`: the variables in SEEN."""
    inventory = json.loads((example / "tests" / "inventory.json").read_text())["all"]
    directory = root / "ansible" / "playbooks"
    directory.mkdir(parents=True)
    (directory / "group_vars").symlink_to(ROOT / "playbooks" / "group_vars")
    (root / "dashboards").symlink_to(ROOT.parent / "dashboards")
    # As in a play that has the roles: their defaults give way to group_vars.
    defaults = of_roles(*{role for roles in ROLES.values() for role in roles}, parts=["defaults"])
    (directory / "defaults.json").write_text(json.dumps({"all": {"vars": defaults}}))
    given = {
        "migration_plan_file": str(example / "migration.yaml"),
        "passwords": {name: {"use": f"{name}/{of['use'][-1]}", "accept": [f"{name}/{each[-1]}" for each in of["accept"]]} for name, of in inventory["vars"]["infra_secrets"]["passwords"].items()},
        "keydb_carried": {"maxmemory": 2**30, "policy": "noeviction", "policies": [], "events": ""},
        "migration_kit_archive": "/kit.tar.gz",
        "migration_kit_version": "1",
    }
    (directory / "playbook.json").write_text(json.dumps([FACTS, *map(play_of, ROLES)]))
    code, output = ansible("-i", directory / "defaults.json", "-i", example / "tests" / "inventory.json", "-c", "local", "-e", "ansible_python_interpreter=" + sys.executable, "-e", json.dumps(given), directory / "playbook.json", ANSIBLE_CALLBACK_RESULT_FORMAT="json")
    assert code == 0, output[-5000:]
    return {name: {file: text for result in of if isinstance(result["msg"], dict) for file, text in result["msg"].items()} for name, of in results(output).items()}


def test_every_variable_is_known_on_both_sides():
    used = {name for path in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/**/*.*")] if path.is_file() for name in re.findall(r"\binfra_[a-z_]+", path.read_text())}
    told = {name for of in [INVENTORY["vars"], *HOSTS.values()] for name in of if name.startswith("infra_")}
    described = set(re.findall(r"^\|[^|]*\| `(infra_[a-z_]+)`|^\| `(infra_[a-z_]+)`|, `(infra_[a-z_]+)`", (TERRAFORM / "README.md").read_text(), re.M))
    described = {name for names in described for name in names if name}
    assert used <= told
    assert told - used <= FOR_OTHERS
    assert described == told


def test_ports_and_passwords_are_those_that_the_contract_names():
    readme = (TERRAFORM / "README.md").read_text()
    ports = re.search(r"`infra_ports` \| `\{ (.*?) \}`", readme).group(1).split(", ")
    assert set(ports) == set(INVENTORY["vars"]["infra_ports"])
    named = re.search(r"NAME is (.*?)\.\n", readme, re.S).group(1)
    assert set(INVENTORY["vars"]["infra_secrets"]["passwords"]) <= set(re.findall(r"`([a-z-]+)`", named))


def test_an_inventory_by_hand_has_the_same_shape():
    example = yaml.safe_load((ROOT / "inventory" / "example.yml").read_text())["all"]
    assert set(example["vars"]) <= set(INVENTORY["vars"])
    assert set(example["children"]) == set(INVENTORY["children"])
    assert set(example["vars"]["infra_ports"]) == set(INVENTORY["vars"]["infra_ports"])
    for name in ["infra_targets", "infra_sources"]:
        [shape] = {frozenset(each) for each in INVENTORY["vars"][name].values()}
        assert [set(each) for each in example["vars"][name].values()] == [shape]
    for group, of in example["children"].items():
        theirs = {name for host in INVENTORY["children"][group].get("hosts", {}).values() for name in host}
        assert {name for host in of.get("hosts", {}).values() for name in host} <= theirs


def test_keydb_has_a_port_of_its_own_and_haproxy_the_ports_of_the_plan(hosts):
    for name in INVENTORY["children"]["keydb"]["hosts"]:
        assert "port 6390\n" in hosts[name]["startup.conf"]
        assert f"REDIS_ADDR=redis://{HOSTS[name]['infra_address']}:6390\n" in hosts[name]["redis-exporter.env"]
        haproxy = hosts[name]["haproxy.cfg"]
        assert re.findall(r"bind (\S+)", haproxy) == ["*:8404", "127.0.0.1:8405", "*:6379", "*:6380"]
        nodes = [(node, HOSTS[node]["infra_address"]) for node in INVENTORY["vars"]["infra_targets"]["keydb-0"]["nodes"]]
        for listener in ["keydb-0-writer", "keydb-0-any"]:
            servers = re.findall(r"server (\S+) (\S+) check", re.search(rf"^listen {listener}$(.*?)\n\n", haproxy, re.S | re.M).group(1))
            assert servers == [(node, f"{address}:6390") for node, address in nodes]
        for node, address in nodes:
            backend = re.search(rf"^backend keydb-0-{node}-sentinels$(.*?)\n\n", haproxy, re.S | re.M).group(1)
            assert f"expect string \\r\\n{address}\\r\\n" in backend
            assert re.findall(r"server (\S+) (\S+) check", backend) == [(each, f"{at}:26379") for each, at in nodes]


def test_every_node_knows_the_sentinels_of_its_target(hosts):
    for name in INVENTORY["children"]["keydb"]["hosts"]:
        fence = json.loads(hosts[name]["start-fence.json"])
        assert [each["name"] for each in fence["sentinels"]] == ["keydb-0-1", "keydb-0-2", "keydb-0-3"]
        assert sorted(each["name"] for each in fence["peers"]) == sorted({"keydb-0-1", "keydb-0-2", "keydb-0-3"} - {name})
        assert f"sentinel monitor keydb-0 {HOSTS['keydb-0-1']['infra_address']} 6390 2\n" in hosts[name]["sentinel.conf"]
        assert re.search(r"^user sentinel on #[0-9a-f]{64} resetchannels &__sentinel__:hello -@all ", hosts[name]["users.acl"], re.M)


def test_haproxy_logs_in_as_itself(hosts):
    assert r"$4\r\nAUTH\r\n$7\r\nhaproxy\r\n$15\r\nkeydb-haproxy/1\r\n" in hosts["keydb-0-1"]["haproxy.cfg"]
    assert re.search(r"^user haproxy on #[0-9a-f]{64} resetchannels -@all \+info \+ping$", hosts["keydb-0-1"]["users.acl"], re.M)


def test_a_password_in_rotation_is_accepted_in_both_generations(hosts):
    assert re.search(r"^user app on #[0-9a-f]{64} #[0-9a-f]{64} ", hosts["keydb-0-2"]["users.acl"], re.M)


def test_users_of_the_source_are_carried_over_as_they_are():
    lines = [f"user {name} on #{'a' * 64} {rules}" for name, rules in [("default", "~* &* +@all"), ("alice", "~a:* resetchannels &c:* -@all +@read")]]
    names = ["keydb-admin", "keydb-replication", "keydb-proxy", "keydb-exporter", "keydb-haproxy", "keydb-sentinel"]
    for carried, default in [(lines, lines[0]), (lines[1:], "user default off nopass resetchannels -@all")]:
        users = render("keydb", "users.acl.j2", keydb_carried_users=carried, keydb_app_users=[], keydb_passwords={name: {"use": name, "accept": [name]} for name in names}).splitlines()
        assert [line for line in users if line.startswith("user default ")] == [default]
        assert users[-1] == lines[1]
        assert len(users) == 8


def test_replicas_follow_the_primary_at_keydbs_own_port(hosts):
    assert "replicaof" not in hosts["keydb-0-1"]["live.conf"]
    for name in ["keydb-0-2", "keydb-0-3"]:
        assert f"replicaof {HOSTS['keydb-0-1']['infra_address']} 6390\n" in hosts[name]["live.conf"]


def test_sources_are_asked_from_the_host_that_they_let_in_and_as_the_plan_does(hosts):
    sources = hosts["keydb-0-1"]["keydb.json"]["keydb_carry_over_sources"]
    told = {each["host"]: (each["port"], each["tls"], each["user"], each["login"], each["via"]) for each in sources}
    assert told == {"master.orders.euc1.cache.amazonaws.com": (6379, True, "proxy", True, "proxy-orders"), "10.0.0.12": (6379, False, "", False, "proxy-carts")}


def test_every_secret_that_the_plan_names_is_written(hosts):
    named = set(re.findall(r"(?:passwordFile|tokenFile): ([^\s,}]+)", (EXAMPLE / "migration.yaml").read_text()))
    for name in INVENTORY["children"]["shadow_proxy"]["hosts"]:
        assert set(hosts[name]["shadow_proxy.json"]["shadow_proxy_secret_files"]) == named


def test_each_proxy_runs_its_shard(hosts):
    for name, host in INVENTORY["children"]["shadow_proxy"]["hosts"].items():
        [peer] = [other for other in INVENTORY["children"]["shadow_proxy"]["hosts"].values() if other["infra_shard"] == host["infra_shard"] and other != host]
        waits = f"--shard {host['infra_shard']} --standby --peer http://{peer['infra_address']}:{peer['infra_admin_port']}\n"
        assert waits in hosts[name]["shadow-proxy.service"]
        assert hosts[name]["shadow_proxy.json"]["shadow_proxy_admin_url"] == f"http://{host['infra_address']}:{host['infra_admin_port']}"


def test_prometheus_reads_where_each_one_listens(hosts):
    targets = {job: {target for of in told for target in of["targets"]} for job, told in hosts["monitoring"]["monitoring.json"]["prometheus_targets"].items()}
    keydb, proxies = INVENTORY["children"]["keydb"]["hosts"], INVENTORY["children"]["shadow_proxy"]["hosts"]
    assert targets["redis-exporter"] == {"127.0.0.1:9121", *(f"{host['infra_address']}:9121" for host in keydb.values())}
    assert targets["haproxy"] == {f"{host['infra_address']}:8404" for host in keydb.values()}
    assert targets["shadow-proxy"] == {f"{host['infra_address']}:{host['infra_admin_port']}" for host in proxies.values()}
    assert targets["alertmanager"] == {"127.0.0.1:9093"}
    sources = {each["type"]: each["url"] for each in yaml.safe_load(hosts["monitoring"]["datasource.yml"])["datasources"]}
    assert sources == {"prometheus": "http://127.0.0.1:9090", "alertmanager": "http://127.0.0.1:9093"}
    assert targets["node"] == {f"{host['infra_address']}:9100" for host in HOSTS.values()}


def test_snapshots_and_reports_go_where_the_host_may_write(hosts):
    bucket = INVENTORY["vars"]["infra_bucket"]
    where = f"aws --region {INVENTORY['vars']['infra_region']} s3 cp --only-show-errors %s s3://{bucket['name']}/%s{INVENTORY['vars']['infra_migration']}/%s/"
    assert where % ("upload.rdb", bucket["backups"], "keydb-0-2") in hosts["keydb-0-2"]["snapshot.sh"]
    assert where % ('"$directory/report.$format"', bucket["reports"], "carts") in hosts["proxy-carts"]["report.sh"]


def test_data_is_where_the_volume_is(hosts):
    for group, directory in {"keydb": "/var/lib/keydb", "shadow_proxy": "/var/lib/shadow-proxy", "monitoring": "/var/lib/prometheus"}.items():
        for name in INVENTORY["children"][group]["hosts"]:
            assert hosts[name][f"{group}.json"]["host_tuning_data_mount"] == directory
            assert HOSTS[name]["infra_data_device"].startswith("/dev/disk/by-id/")
