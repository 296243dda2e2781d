"""The playbooks that act on every shard, with a real proxy for each of two shards: promoted as one, copied, compared, rolled back."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

import pytest

from conftest import ROOT, ansible, free_port, wait_for
from resp import Server

REPOSITORY = ROOT.parent
PROXY = REPOSITORY / "dist/shadow-proxy/src/main.js"
KEYDB = os.environ.get("KEYDB_SERVER") or shutil.which("keydb-server")
SHARDS = ["one", "two"]


class Shards:
    """A Redis, a KeyDB and a proxy for each shard."""

    def __init__(self, directory):
        self.directory, self.processes = directory, {}
        self.ports = {(shard, what): free_port() for shard in SHARDS for what in ["source", "target", "listen", "admin"]}
        for shard in SHARDS:
            for what, program in [("source", "redis-server"), ("target", KEYDB)]:
                home = directory / f"{shard}-{what}"
                home.mkdir()
                self._start((shard, what), program, "--bind", "127.0.0.1", "--port", self.ports[shard, what], "--save", "", "--dir", home)
                wait_for(self.ports[shard, what], program)
            self.ask(shard, "source", "SET", "session:1", shard)
        plan = directory / "plan.yaml"
        plan.write_text(json.dumps({
            "version": 1, "name": "two", "state": str(directory / "state"), "workloads": [{"name": "sessions", "keys": ["session:*"], "class": "read-mostly"}],
            "shards": [{"name": shard, "admin": {"listen": f"127.0.0.1:{self.ports[shard, 'admin']}"}, **{what: f"redis://127.0.0.1:{self.ports[shard, what]}" for what in ["source", "target", "listen"]}} for shard in SHARDS],
        }))
        for shard in SHARDS:
            self._start((shard, "proxy"), "node", PROXY, "--plan", plan, "--shard", shard)
            wait_for(self.ports[shard, "admin"], "the proxy")
        hosts = {f"proxy-{shard}": {"ansible_connection": "local", "ansible_become": False, "infra_address": "127.0.0.1", "infra_shard": shard, "infra_admin_port": self.ports[shard, "admin"]} for shard in SHARDS}
        self.inventory = directory / "inventory.json"
        self.inventory.write_text(json.dumps({"all": {"children": {"shadow_proxy": {"hosts": hosts}}}}))
        programs = directory / "bin"
        programs.mkdir()
        (programs / "shadow-compare").symlink_to(REPOSITORY / "shadow-proxy/bin/shadow-compare.mjs")
        self.path = f"{programs}:{os.environ['PATH']}"

    def _start(self, what, *command):
        self.processes[what] = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, shard, what, *words):
        with Server("127.0.0.1", self.ports[shard, what]) as server:
            return server.call(*words)

    def play(self, playbook, **variables):
        """@returns exit code, and what it said in one line"""
        given = {"shadow_proxy_admin_options": ["--admin=http://{{ infra_address }}:{{ infra_admin_port }}"], "ansible_python_interpreter": sys.executable, **variables}
        code, output = ansible("-i", self.inventory, "-e", json.dumps(given), ROOT / "playbooks" / f"{playbook}.yml", PATH=self.path)
        return code, " ".join(output.split())

    def stages(self):
        def stage(shard):
            said = urllib.request.urlopen(f"http://127.0.0.1:{self.ports[shard, 'admin']}/api/status", timeout=10).read()
            return next(each["stage"] for each in json.loads(said)["shards"][0]["workloads"] if each["name"] == "sessions")

        return [stage(shard) for shard in SHARDS]

    def end(self, *what):
        for each in [what] if what else list(self.processes):
            process = self.processes.pop(each)
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    if KEYDB is None or not PROXY.exists():
        pytest.skip("no keydb-server, or the proxy is not built: the playbooks were not tried with it")
    made = Shards(tmp_path_factory.mktemp("shards"))
    yield made
    made.end()


class TestInThisOrder:
    """Each begins where the one before ended."""

    def test_all_shards_move_as_one(self, shards):
        code, said = shards.play("promote", promote_workload="sessions")
        assert code != 0 and "Say what to promote" in said
        # The gate `target` of one shard is closed.
        shards.ask("two", "target", "SET", "session:9", "of somebody else")
        code, said = shards.play("promote", promote_workload="sessions", promote_to="dualwrite")
        assert code != 0 and shards.stages() == ["off", "off"], said
        shards.ask("two", "target", "DEL", "session:9")
        code, said = shards.play("promote", promote_workload="sessions", promote_to="dualwrite")
        assert code == 0 and shards.stages() == ["dualwrite", "dualwrite"], said
        # A table is a text, not a list of quoted lines.
        assert said.count("msg: |- ") == 2 and "│ yes │ target" in " ".join(said.split()) and "- '│" not in said, said

        code, said = shards.play("copy")
        assert code == 0 and said.count("1 key compared, 0 differ") == 2, said
        assert [shards.ask(shard, "target", "GET", "session:1") for shard in SHARDS] == SHARDS

    def test_a_shard_that_is_there_already_is_left_as_it_is(self, shards):
        """As after a run that was interrupted."""
        subprocess.run(["shadow-compare", "promote", "sessions", "--to", "shadow", f"--admin=http://127.0.0.1:{shards.ports['one', 'admin']}"], env={**os.environ, "PATH": shards.path}, check=True, capture_output=True)
        code, said = shards.play("promote", promote_workload="sessions", promote_to="shadow")
        assert code == 0 and shards.stages() == ["shadow", "shadow"], said
        assert re.search(r"proxy-one : ok=\d+ changed=0 .*proxy-two : ok=\d+ changed=1 ", said), said

    def test_a_shard_that_cannot_be_copied_is_named_and_the_others_are_copied(self, shards):
        shards.end("two", "target")
        code, said = shards.play("copy")
        assert code != 0 and "fatal: [proxy-two]" in said and "one: verify done: 1 key compared, 0 differ" in said, said
