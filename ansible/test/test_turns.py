"""Of two proxies of a shard, Ansible never changes both at once: the one that serves comes second, whichever it is."""

import contextlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from conftest import ROOT, ansible, results


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


#: By shard: what the first proxy of the inventory says, what the other one says, and which of both has its turn first.
SHARDS = {
    "nobody-serves": (None, None, "first"),
    "the-first-alone": ((200,), None, "second"),
    "the-first": ((200,), STANDBY, "second"),
    "the-second": (STANDBY, (200,), "first"),
    "two-standbys": (STANDBY, STANDBY, "first"),
    # Its server is down: it serves all the same.
    "the-first-is-not-ready": ((503,), STANDBY, "second"),
}


@pytest.fixture(scope="module")
def turns(tmp_path_factory):
    """By number of the turn: the hosts that have it; with a shard that has one proxy alone."""
    plays = yaml.safe_load((ROOT / "playbooks" / "shadow-proxy.yml").read_text())
    [who] = [play for play in plays if play["name"] == "Who serves"]
    show = [{"hosts": f"shadow_proxy_turn_{n}", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": n}}]} for n in [1, 2]]
    directory = tmp_path_factory.mktemp("turns") / "playbooks"
    directory.mkdir()
    for name in ["group_vars", "tasks"]:
        (directory / name).symlink_to(ROOT / "playbooks" / name)
    with contextlib.ExitStack() as stack:
        hosts = {"alone": {"infra_shard": "alone", "infra_admin_port": stack.enter_context(admin(200))}}
        for shard, (first, second, _) in SHARDS.items():
            # Neither the order of the inventory nor that of names says who is the first.
            for name, role, said in [("a-second", "standby", second), ("first", "first", first)]:
                hosts[f"{name}-{shard}"] = {"infra_shard": shard, "infra_initial_role": role, "infra_admin_port": stack.enter_context(admin(*(said or [None])))}
        local = {"infra_address": "127.0.0.1", "ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        (directory / "inventory.json").write_text(json.dumps({"all": {"vars": local, "children": {"shadow_proxy": {"hosts": hosts}}}}))
        (directory / "playbook.json").write_text(json.dumps([who, *show]))
        code, output = ansible("-i", directory / "inventory.json", directory / "playbook.json", ANSIBLE_CALLBACK_RESULT_FORMAT="json")
    assert code == 0, output[-3000:]
    found = {name: [result["msg"] for result in of] for name, of in results(output).items()}
    assert set(found) == set(hosts) and all(len(each) == 1 for each in found.values()), "each host has one turn"
    return {n: {name for name, [turn] in found.items() if turn == n} for n in [1, 2]}


@pytest.mark.parametrize("shard", SHARDS)
def test_the_proxy_that_serves_comes_second(turns, shard):
    proxies = {"first": f"first-{shard}", "second": f"a-second-{shard}"}
    begins = proxies.pop(SHARDS[shard][2])
    [other] = proxies.values()
    assert begins in turns[1] and other in turns[2]


def test_a_proxy_alone_does_not_wait(turns):
    assert "alone" in turns[1]
