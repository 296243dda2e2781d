"""Snapshots and reports go to a bucket of a real S3 API, and come back as what they were."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from conftest import ROOT

pytestmark = pytest.mark.long

PROGRAMS = Path(sys.executable).parent
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAUPLOAD", "AWS_SECRET_ACCESS_KEY": "a\"b$c#d'e\\f`g"}
BUCKET, REGION = "checkout-cache-backups", "eu-central-1"
SHADOW_COMPARE = ROOT.parent / "shadow-proxy" / "bin" / "shadow-compare.mjs"


@pytest.fixture(scope="module")
def s3(aws):
    """A client, and the bucket."""
    client = boto3.client("s3", endpoint_url=aws, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
    client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    return client


@pytest.fixture
def upload(play, s3, tmp_path):
    """A function that renders the role's files for what is uploaded, runs its program, and gives back its exit code, what it said, and the names in the bucket."""

    def run(what, prefix, **variables):
        files = {f"{what}.sh.j2": "program", "environment.j2": "environment", "upload.service.j2": "upload.service", "upload.timer.j2": "upload.timer"}
        tasks = [
            {"ansible.builtin.include_vars": str(ROOT / "roles/bucket_upload/defaults/main.yml")},
            *[{"ansible.builtin.template": {"src": str(ROOT / "roles/bucket_upload/templates" / template), "dest": str(tmp_path / name), "mode": "0700"}} for template, name in files.items()],
        ]
        given = {"bucket_upload_what": what, "bucket_upload_prefix": prefix, "bucket_upload_bucket": BUCKET, "bucket_upload_region": REGION, "bucket_upload_endpoint": s3.meta.endpoint_url, "bucket_upload_environment": CREDENTIALS, **variables}
        code, output = play(tasks, **given)
        assert code == 0, output
        assert not any(CREDENTIALS["AWS_SECRET_ACCESS_KEY"] in (tmp_path / name).read_text() for name in ["program", "upload.service", "upload.timer"]), "ps and units tell no secret"
        start = ["sh", "-c", 'set -a; . "$0"; exec "$1"', tmp_path / "environment", tmp_path / "program"]
        path = f"{tmp_path}:{PROGRAMS}:{os.environ['PATH']}"
        done = subprocess.run(start, env={"PATH": path, "HOME": str(tmp_path)}, capture_output=True, text=True)
        found = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return done.returncode, done.stdout + done.stderr, [each["Key"] for each in found]

    return run


def test_a_snapshot_comes_back_as_a_server_that_holds_the_same(upload, keydb, s3, play):
    commands = [["SET", "k", "v"], ["EXPIRE", "k", "86400"], ["ZADD", "board", "1", "a", "2", "b"], ["XADD", "log", "1-1", "f", "v"]]
    digest = {"keydb_command": {"port": keydb.port, "commands": [["DEBUG", "DIGEST"], ["DBSIZE"]]}, "register": "told"}
    tell = {"ansible.builtin.debug": {"msg": "RESULT {{ told.replies | join('+') }} END"}}
    code, before = play([{"keydb_command": {"port": keydb.port, "commands": [*commands, ["SAVE"]]}}, digest, tell])
    assert code == 0, before
    code, output, names = upload("snapshot", "backups/m/one/", bucket_upload_data_dir=str(keydb.live.parent))
    assert code == 0 and len(names) == 1 and names[0].endswith("Z.rdb"), output
    assert not (keydb.live.parent / "upload.rdb").exists()

    keydb.process.terminate()
    keydb.process.wait()
    (keydb.live.parent / "dump.rdb").unlink()
    s3.download_file(BUCKET, names[0], str(keydb.live.parent / "dump.rdb"))
    keydb.restart()
    code, after = play([digest, tell])
    assert code == 0, after
    result = [output.partition("RESULT ")[2].partition(" END")[0] for output in (before, after)]
    assert result[0].endswith("+3") and result[0] == result[1]


def test_a_node_without_a_snapshot_says_so(upload, tmp_path):
    (tmp_path / "data").mkdir()
    code, output, names = upload("snapshot", "backups/m/none/", bucket_upload_data_dir=str(tmp_path / "data"))
    assert code == 1 and "no snapshot yet" in output and names == []


def test_a_bucket_that_refuses_is_a_failure(upload, keydb, play):
    assert play([{"keydb_command": {"port": keydb.port, "commands": [["SAVE"]]}}])[0] == 0
    code, output, _ = upload("snapshot", "backups/m/refused/", bucket_upload_bucket="no-such-bucket", bucket_upload_data_dir=str(keydb.live.parent))
    assert code == 1 and "NoSuchBucket" in output
    assert not (keydb.live.parent / "upload.rdb").exists()


def test_a_report_of_the_shard_is_uploaded_for_people_and_for_programs(upload, s3, tmp_path):
    (tmp_path / "shadow-compare").symlink_to(SHADOW_COMPARE)
    (tmp_path / "token").write_text("none-is-asked-for")
    directory = tmp_path / "local"
    local = lambda *words: subprocess.run(["node", SHADOW_COMPARE, "local", *words, "--directory", directory], capture_output=True, text=True)
    up = local("up")
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        admin = json.loads((directory / "running.json").read_text())["admin"]
        code, output, names = upload("report", "reports/m/s/", bucket_upload_admin_url=admin, bucket_upload_token_file=str(tmp_path / "token"))
    finally:
        local("down")
    assert code == 0, output
    by_ending = {name.rpartition(".")[2]: s3.get_object(Bucket=BUCKET, Key=name)["Body"].read().decode() for name in names}
    assert set(by_ending) == {"html", "json"}
    assert json.loads(by_ending["json"])["shards"][0]["from"] == "proxy" and "<html" in by_ending["html"]


def test_the_units_are_as_systemd_wants_them(upload, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: the units were not looked at by systemd")
    (tmp_path / "data").mkdir()
    upload("snapshot", "backups/m/units/", bucket_upload_data_dir=str(tmp_path / "data"))
    for kind in ["service", "timer"]:
        unit = tmp_path / f"upload.{kind}"
        unit.chmod(0o600)
        unit.write_text(unit.read_text().replace("/usr/local/sbin/upload-snapshot", str(tmp_path / "program")))
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / "upload.service", tmp_path / "upload.timer"], capture_output=True, text=True)
    assert done.returncode == 0 and "upload." not in done.stderr, done.stderr
