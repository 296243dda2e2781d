"""What Prometheus is told on the monitoring host, from the example inventory: the kit's configuration and rules, every host, the labels."""

import json
import shutil
import subprocess

import pytest
import yaml

from conftest import ROOT, ansible, results

WANTED = "{{ {'targets': prometheus_targets, 'config': prometheus_config, 'rules': prometheus_rule_files, 'ours': alertmanager_enabled | bool, 'inhibit': alertmanager_inhibit_rules} }}"
PASSWORDS = {name: {"use": "x", "accept": ["x"]} for name in ["proxy-admin-token", "keydb-exporter", "grafana-admin"]}


#: What differs from the inventory: another Alertmanager, instead of the kit's, and beside it.
YOURS = [{"targets": ["alertmanager.example.net:9093"]}]
GIVEN = {"ours": {}, "yours": {"alertmanagers": YOURS}, "both": {"alertmanagers": YOURS, "alertmanager_enabled": True}}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """By name of GIVEN: what the monitoring host is told then."""
    directory = tmp_path_factory.mktemp("prometheus") / "ansible" / "playbooks"
    directory.mkdir(parents=True)
    (directory / "group_vars").symlink_to(ROOT / "playbooks" / "group_vars")
    (directory.parents[1] / "dashboards").symlink_to(ROOT.parent / "dashboards")
    plays = [{"hosts": "monitoring", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": WANTED}, "vars": given} for given in GIVEN.values()]}]
    (directory / "playbook.json").write_text(json.dumps(plays))
    given = json.dumps({"passwords": PASSWORDS, "runbooks_url": "https://runbooks.example.net", "migration_plan_file": str(ROOT.parent / "migration.example.yaml")})
    code, output = ansible("-i", ROOT / "inventory" / "example.yml", "-c", "local", "-e", given, directory / "playbook.json", ANSIBLE_CALLBACK_RESULT_FORMAT="json")
    assert code == 0, output
    return dict(zip(GIVEN, (result["msg"] for result in results(output)["monitoring"]), strict=True))


@pytest.fixture(scope="module")
def told(asked):
    return asked["ours"]


def test_every_job_has_its_targets_and_every_host_is_read(told):
    jobs = [job["job_name"] for job in told["config"]["scrape_configs"]]
    assert set(told["targets"]) == {*jobs, "alertmanager"}
    instances = {job: [each["labels"]["instance"] for each in told["targets"][job]] for job in jobs}
    assert instances == {
        "shadow-proxy": ["proxy-cache-0"],
        "redis-exporter": ["keydb-0-1", "keydb-0-2", "10.0.0.11:6379"],
        "node": ["keydb-0-1", "keydb-0-2", "monitoring", "proxy-cache-0"],
        "haproxy": ["keydb-0-1", "keydb-0-2"],
    }


def test_servers_have_a_side_and_a_shard_and_the_source_is_asked_for_from_here(told):
    servers = {each["labels"]["instance"]: each for each in told["targets"]["redis-exporter"]}
    assert [(each["labels"]["side"], each["labels"]["shard"]) for each in servers.values()] == [("target", "cache-0")] * 2 + [("source", "cache-0")]
    source = servers["10.0.0.11:6379"]
    assert source["targets"] == ["127.0.0.1:9121"]
    assert source["labels"]["__param_target"] == "redis://10.0.0.11:6379"
    assert told["targets"]["shadow-proxy"] == [{"targets": ["10.0.1.31:9400"], "labels": {"instance": "proxy-cache-0", "shard": "cache-0"}}]


def test_alerts_go_to_the_alertmanager_of_this_host(told):
    assert (told["ours"], told["targets"]["alertmanager"]) == (True, [{"targets": ["127.0.0.1:9093"]}])
    assert told["inhibit"] == yaml.safe_load((ROOT.parent / "dashboards/prometheus/alertmanager.example.yml").read_text())["inhibit_rules"]


def test_or_to_yours_or_to_both(asked):
    assert (asked["yours"]["ours"], asked["yours"]["targets"]["alertmanager"]) == (False, YOURS)
    assert (asked["both"]["ours"], asked["both"]["targets"]["alertmanager"]) == (True, [{"targets": ["127.0.0.1:9093"]}, *YOURS])


def test_prometheus_takes_it_with_the_kits_rules(told, tmp_path):
    assert told["config"]["global"]["external_labels"] == {"migration": "checkout-cache", "runbooks": "https://runbooks.example.net"}
    assert len(told["rules"]) >= 4
    if shutil.which("promtool") is None:
        pytest.skip("no promtool: Prometheus' configuration was not tried against it")
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(told["config"]))
    for name in ["rules", "targets", "tokens"]:
        (tmp_path / name).mkdir()
    (tmp_path / "tokens" / "shadow-proxy").write_text("x")
    for path in told["rules"]:
        shutil.copy(path, tmp_path / "rules")
    for job, targets in told["targets"].items():
        (tmp_path / "targets" / f"{job}.yml").write_text(yaml.safe_dump(targets))
    done = subprocess.run(["promtool", "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
