"""Of two proxies of a shard, Ansible never changes both at once: the one that serves comes second, whichever it is."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from conftest import PROGRAM, ROOT


STANDBY = (503, "standby")


@contextlib.contextmanager
def admin(status, reason=None):
    """A proxy's admin HTTP as a load balancer sees it; no one listens where the status is None."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"ok": status == 200, **({"reason": reason} if reason else {})}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    if status is None:
        server.server_close()
        yield port
        return
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "first,second,turns",
    [
        (None, None, [["a"], ["a-b"]]),
        ((200,), None, [["a-b"], ["a"]]),
        ((200,), STANDBY, [["a-b"], ["a"]]),
        (STANDBY, (200,), [["a"], ["a-b"]]),
        (STANDBY, STANDBY, [["a"], ["a-b"]]),
        # Its server is down: it serves all the same.
        ((503,), STANDBY, [["a-b"], ["a"]]),
    ],
)
def test_the_proxy_that_serves_comes_second(tmp_path, first, second, turns):
    plays = yaml.safe_load((ROOT / "playbooks" / "shadow-proxy.yml").read_text())
    [who] = [play for play in plays if play["name"] == "Who serves"]
    show = [
        {"hosts": f"shadow_proxy_turn_{n}", "gather_facts": False, "tasks": [{"ansible.builtin.copy": {"content": "", "dest": f"{tmp_path}/{n}-{{{{ inventory_hostname }}}}", "mode": "0600"}}]}
        for n in [1, 2]
    ]
    directory = tmp_path / "playbooks"
    directory.mkdir()
    for name in ["group_vars", "tasks"]:
        (directory / name).symlink_to(ROOT / "playbooks" / name)
    with admin(*(first or [None])) as one, admin(*(second or [None])) as two, admin(200) as alone:
        host = {"infra_address": "127.0.0.1", "infra_shard": "a"}
        hosts = {
            "a-b": {**host, "infra_admin_port": two, "infra_initial_role": "standby"},
            "a": {**host, "infra_admin_port": one, "infra_initial_role": "first"},
            "c": {**host, "infra_admin_port": alone, "infra_shard": "c"},
        }
        (directory / "inventory.json").write_text(json.dumps({"all": {"children": {"shadow_proxy": {"hosts": hosts}}}}))
        (directory / "playbook.json").write_text(json.dumps([who, *show]))
        command = [PROGRAM, "-i", directory / "inventory.json", "-c", "local", "-e", "ansible_python_interpreter=" + sys.executable, directory / "playbook.json"]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert [sorted(path.name[2:] for path in tmp_path.glob(f"{n}-*")) for n in [1, 2]] == [sorted(turns[0] + ["c"]), turns[1]]
