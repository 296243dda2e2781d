"""secrets.yml fetches every generation from where the inventory says that it is, and shows none of them."""

import json
import os
import subprocess

import boto3
import pytest

from conftest import PROGRAM, ROOT

REGION = "eu-central-1"
KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}


def client(service, aws):
    return boto3.client(service, endpoint_url=aws, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")


@pytest.mark.parametrize("store", ["secretsmanager", "ssm"])
def test_passwords_are_fetched_from_either_store_and_not_shown(store, aws, tmp_path):
    manager, parameters = client("secretsmanager", aws), client("ssm", aws)
    values = {name: f"{store} {name} a\"b$c'd" for name in ["m/keydb-app/1", "m/keydb-app/2"]}
    ids = {}
    for name, value in values.items():
        if store == "ssm":
            ids[name] = f"/{name}"
            parameters.put_parameter(Name=ids[name], Value=value, Type="SecureString", Overwrite=True)
        else:
            ids[name] = name
            manager.create_secret(Name=name, SecretString=value)
    # The old Redis's own are where they always were.
    old = {
        "source-proxy": manager.create_secret(Name=f"old-proxy-{store}", SecretString="old proxy")["ARN"],
        "source-exporter": "arn:aws:ssm:%s:123456789012:parameter/old-exporter" % REGION,
    }
    parameters.put_parameter(Name="/old-exporter", Value="old exporter", Type="SecureString", Overwrite=True)
    passwords = {"keydb-app": {"use": ids["m/keydb-app/2"], "accept": list(ids.values())}, **{name: {"use": arn, "accept": [arn]} for name, arn in old.items()}}
    inventory = {"all": {"vars": {"infra_region": REGION, "infra_secrets": {"store": store, "passwords": passwords}}}}
    (tmp_path / "inventory.json").write_text(json.dumps(inventory))
    found = tmp_path / "found.json"
    after = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [{"ansible.builtin.copy": {"content": "{{ secrets_fetched | to_json }}", "dest": str(found), "mode": "0600"}, "no_log": True}]}]
    (tmp_path / "after.json").write_text(json.dumps(after))
    environment = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": aws, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    done = subprocess.run([PROGRAM, "-vvv", "-i", tmp_path / "inventory.json", ROOT / "playbooks" / "secrets.yml", tmp_path / "after.json"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(found.read_text()) == {
        "keydb-app": {"use": values["m/keydb-app/2"], "accept": list(values.values())},
        "source-proxy": {"use": "old proxy", "accept": ["old proxy"]},
        "source-exporter": {"use": "old exporter", "accept": ["old exporter"]},
    }
    assert not [told for told in [*(f"{store} {name}" for name in values), "old proxy", "old exporter"] if told in done.stdout + done.stderr]
