"""playbooks/load-test.yml: several hosts load at the same time, and one report comes of it."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from conftest import ROOT, ansible, free_port, refusals, wait_for

LOADTEST = ROOT.parent / "dist" / "loadtest" / "cli" / "main.js"


@pytest.fixture
def servers(tmp_path):
    """Two Redis; their URLs."""
    running = []
    for name in ["source", "target"]:
        port = free_port()
        (tmp_path / name).mkdir()
        running.append((f"redis://127.0.0.1:{port}", subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir", tmp_path / name], stdout=subprocess.DEVNULL)))
        wait_for(port, name)
    yield [url for url, _ in running]
    for _, process in running:
        process.terminate()
        process.wait()


def load_test(hosts, **variables):
    """Runs the playbook with so many hosts, which are all this machine. @returns exit code and output"""
    inventory = {"loadgen": {"hosts": {f"load-{i}": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable} for i in range(hosts)}}}
    path = variables.pop("inventory")
    path.write_text(json.dumps(inventory))
    code, output = ansible("-i", path, "-e", json.dumps({"load_test_program": str(LOADTEST), **variables}), ROOT / "playbooks/load-test.yml")
    return code, " ".join(output.split())


@pytest.mark.long
@pytest.mark.skipif(shutil.which("memtier_benchmark") is None and shutil.which("redis-benchmark") is None, reason="no memtier_benchmark and no redis-benchmark: no load was made")
def test_two_hosts_load_together(servers, tmp_path):
    driver = [] if shutil.which("memtier_benchmark") else ["--driver", "redis-benchmark"]
    options = ["--profile", "rate-limits", "--rounds", "2", "--seconds", "2", "--warm-up", "1", *driver, "--source", servers[0], "--target", servers[1]]
    out = tmp_path / "out"
    # One machine plays both, and may be busy: hosts that did not load together are refused, and asked again.
    for _ in range(3):
        code, output = load_test(2, inventory=tmp_path / "hosts.json", load_test_options=options, load_test_out=str(out), load_test_lead_seconds=25)
        if code == 0 or not ("the hosts loaded it together for" in output or "should have begun" in output):
            break
    assert code == 0, output
    merged, *each = (json.loads((out / name / "results.json").read_text())["counters"] for name in ["", "load-0", "load-1"])
    for i, check in enumerate(merged):
        assert check["found"] == check["expected"] == sum(host[i]["expected"] for host in each) > 0, "the increments of both, and nothing else, are on the server"
    assert len(merged) == 2 and (out / "report.html").stat().st_size > 10_000


def test_what_is_missing_is_asked_for(tmp_path):
    [ask, *_] = yaml.safe_load((ROOT / "playbooks/load-test.yml").read_text())[0]["tasks"]
    options = {"load_test_options": ["--profile", "flags"]}
    wrong = [{}, options, {"load_test_out": "/tmp/x"}, {**options, "load_test_out": "x"}, {"load_test_options": ["--out", "x"], "load_test_out": "/tmp/x"}]
    cases = {f"case{i}": given for i, given in enumerate([{**options, "load_test_out": "/tmp/x"}, *wrong])}
    # Each case is a host here; in the playbook one host asks for all.
    assert ask.pop("run_once") is True
    [none, *told] = [refused for _, refused in sorted(refusals(tmp_path, [ask], cases).items())]
    assert none is None
    assert all(message and message.startswith("Give load_test_options") for message in told), told


def test_it_asks_before_it_loads(tmp_path):
    code, output = load_test(1, inventory=tmp_path / "hosts.json")
    assert code != 0 and "Give load_test_options" in output and re.search(r"ok=0 changed=0 .*failed=1", output), output
