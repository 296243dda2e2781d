"""Roles and playbooks, read: every option described, every default said once in either place, every playbook's syntax."""

import subprocess
from pathlib import Path

import pytest
import yaml

from conftest import ROOT, ansible, render

ROLES = sorted(path.name for path in (ROOT / "roles").iterdir())
PLAYBOOKS = sorted(path.name for path in (ROOT / "playbooks").glob("*.yml"))


def test_all_roles_and_playbooks_are_there():
    assert set(ROLES) >= {"keydb", "redis_exporter", "shadow_proxy", "prometheus", "alertmanager", "grafana", "haproxy", "loadgen", "host_tuning"}
    assert {Path(name).stem for name in PLAYBOOKS} >= {"site", "keydb", "shadow-proxy", "observability", "upgrade", "rollback", "retire-redis", "test-alert"}


@pytest.mark.parametrize("role", ROLES)
def test_every_option_is_described_and_has_the_default_of_the_role(role):
    options = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    defaults = yaml.safe_load((ROOT / "roles" / role / "defaults" / "main.yml").read_text())
    for name, option in options.items():
        assert name.startswith(role + "_"), name
        assert len(option["description"]) > 5, name
        assert option.get("required", False) != ("default" in option), f"{name} has to be required, or to have a default"
    assert {name: option["default"] for name, option in options.items() if "default" in option} == defaults


def test_every_mitigation_says_why():
    options = yaml.safe_load((ROOT / "roles/keydb/meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    switches = {name: option for name, option in options.items() if name.startswith("keydb_mitigate_")}
    assert len(switches) >= 6
    for name, option in switches.items():
        assert option["type"] == "bool" and len(option["description"]) > 60, name


def test_syntax():
    code, output = ansible("--syntax-check", "-i", ROOT / "inventory" / "example.yml", *[ROOT / "playbooks" / name for name in PLAYBOOKS])
    assert code == 0, output


@pytest.mark.parametrize("role,template,variable", [("redis_exporter", "redis-exporter.env", "REDIS_PASSWORD"), ("shadow_proxy", "environment", "REDIS_PASSWORD")])
def test_a_password_of_any_characters_arrives(tmp_path, role, template, variable):
    """Read by a shell here, for systemd's files of environment have its quotes."""
    password = "a\"b$c#d'e\\f`g é"
    file = tmp_path / "environment"
    given = {"redis_exporter_password": password} if role == "redis_exporter" else {"shadow_proxy_environment": {variable: password}}
    file.write_text(render(role, f"{template}.j2", **given))
    assert subprocess.run(["sh", "-c", f'. "$0"; printf %s "${variable}"', file], capture_output=True, text=True).stdout == password
