"""What Prometheus is told on the monitoring host, from the example inventory: the kit's configuration and rules, every host, the labels."""

import json
import os
import shutil
import subprocess

import pytest
import yaml

from conftest import PROGRAM, ROOT

WANTED = "{{ {'targets': prometheus_targets, 'config': prometheus_config, 'rules': prometheus_rule_files, 'ours': alertmanager_enabled | bool, 'inhibit': alertmanager_inhibit_rules} }}"
PASSWORDS = {name: {"use": "x", "accept": ["x"]} for name in ["proxy-admin-token", "keydb-exporter", "grafana-admin"]}


def ask(**variables):
    options = ["-i", ROOT / "inventory" / "example.yml", "--playbook-dir", ROOT / "playbooks", "-c", "local"]
    plan = str(ROOT.parent / "migration.example.yaml")
    given = json.dumps({"passwords": PASSWORDS, "runbooks_url": "https://runbooks.example.net", "migration_plan_file": plan, **variables})
    command = [PROGRAM.parent / "ansible", "monitoring", *options, "-m", "debug", "-a", "msg=" + WANTED, "-e", given]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # ansible.cfg has results printed as YAML.
    return yaml.safe_load(done.stdout.partition(" =>")[2])["msg"]


@pytest.fixture(scope="module")
def told():
    return ask()


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


@pytest.mark.parametrize("both", [False, True])
def test_or_to_yours_or_to_both(both):
    yours = [{"targets": ["alertmanager.example.net:9093"]}]
    told = ask(alertmanagers=yours, **({"alertmanager_enabled": True} if both else {}))
    assert (told["ours"], told["targets"]["alertmanager"]) == (both, [*([{"targets": ["127.0.0.1:9093"]}] if both else []), *yours])


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
