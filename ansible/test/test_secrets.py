"""secrets.yml fetches every generation from where the inventory says that it is, and shows none of them."""

import json

import boto3
import pytest

from conftest import ROOT, ansible

REGION = "eu-central-1"
KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}


def client(service, aws):
    return boto3.client(service, endpoint_url=aws, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")


#: By store: generations of one password there, by name; and a password of the old Redis that stands in the other store, by ARN, as it always did.
STORES = {"secretsmanager": (["m/keydb-app/1", "m/keydb-app/2"], "ssm"), "ssm": (["/m/keydb-app/1"], "secretsmanager")}


@pytest.mark.parametrize("store", STORES)
def test_passwords_are_fetched_from_either_store_and_not_shown(store, aws, tmp_path):
    manager, parameters = client("secretsmanager", aws), client("ssm", aws)

    def put(where, name, value):
        """@returns its ARN"""
        if where == "secretsmanager":
            return manager.create_secret(Name=name, SecretString=value)["ARN"]
        parameters.put_parameter(Name=name, Value=value, Type="SecureString")
        return parameters.get_parameter(Name=name)["Parameter"]["ARN"]

    names, other = STORES[store]
    values = {name: f"{store} {name} a\"b$c'd" for name in names}
    for name, value in values.items():
        put(store, name, value)
    old = put(other, "/old-proxy", "old proxy")
    passwords = {"keydb-app": {"use": names[-1], "accept": names}, "source-proxy": {"use": old, "accept": [old]}}
    inventory = {"all": {"vars": {"infra_region": REGION, "infra_secrets": {"store": store, "passwords": passwords}}}}
    (tmp_path / "inventory.json").write_text(json.dumps(inventory))
    found = tmp_path / "found.json"
    after = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [{"ansible.builtin.copy": {"content": "{{ secrets_fetched | to_json }}", "dest": str(found), "mode": "0600"}, "no_log": True}]}]
    (tmp_path / "after.json").write_text(json.dumps(after))
    code, output = ansible("-vvv", "-i", tmp_path / "inventory.json", ROOT / "playbooks" / "secrets.yml", tmp_path / "after.json", AWS_ENDPOINT_URL=aws, **KEYS)
    assert code == 0, output
    assert json.loads(found.read_text()) == {
        "keydb-app": {"use": values[names[-1]], "accept": list(values.values())},
        "source-proxy": {"use": "old proxy", "accept": ["old proxy"]},
    }
    assert not [told for told in [*(f"{store} {name}" for name in values), "old proxy"] if told in output]
