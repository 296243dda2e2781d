"""KeyDB nodes as the role configures them, with TLS, started as its unit starts them: who gets in, replication, and what a second run does."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from conftest import PROGRAM, ROOT, free_port
from host import LACKS, Host
from keydb_nodes import port_with_bus
from resp import Server

pytestmark = pytest.mark.long

#: Addresses of their own, not that of every machine: the certificate is for these alone.
NAMES = {"one": "127.0.0.2", "two": "127.0.0.3"}
PASSWORDS = {name: {"use": f"{name} a\"b#c'd\\e", "accept": [f"{name} a\"b#c'd\\e"]} for name in ["keydb-admin", "keydb-replication", "keydb-proxy", "keydb-exporter", "keydb-haproxy", "keydb-sentinel", "keydb-app"]}
LOGIN = {"host": "{{ infra_address }}", "port": "{{ keydb_port }}", "user": "admin", "password": "{{ keydb_passwords['keydb-admin'].use }}", "tls_ca": "/etc/keydb/tls/ca.crt"}
KEYDB = os.environ.get("KEYDB_SERVER") or shutil.which("keydb-server")
#: The role's own tasks, but those that install packages and speak to systemd.
CONFIGURE = [
    {"keydb_info": {**LOGIN, "optional": True}, "register": "keydb_before"},
    *[{"ansible.builtin.include_role": {"name": "keydb", "tasks_from": part}} for part in ["tls", "configure"]],
    {"ansible.builtin.meta": "flush_handlers"},
]
#: Of which a test has only the files.
OTHERS = ["redis_exporter/redis-exporter.env", "redis_exporter/redis-exporter.service", "haproxy/haproxy.cfg"]


def certificates(directory, addresses=NAMES):
    """An authority, and a certificate of all nodes by it. @returns their paths, as the role's variables name them"""
    directory.mkdir()
    names = ",".join(f"IP:{address}" for address in addresses.values())
    for command in [
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=authority",
        "req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node",
        f"x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile /dev/stdin -out node.crt|subjectAltName={names}",
    ]:
        command, _, given = command.partition("|")
        subprocess.run(["openssl", *command.split()], cwd=directory, input=given, text=True, capture_output=True, check=True)
    return {"keydb_tls_cert": str(directory / "node.crt"), "keydb_tls_key": str(directory / "node.key"), "keydb_tls_ca": str(directory / "ca.crt")}


class Target:
    """Two nodes, of which the first is the primary; or those of the targets that are given."""

    def __init__(self, directory, certs, addresses=NAMES, targets=None):
        self.directory, self.port, self.addresses = directory, port_with_bus(), addresses
        self.nodes = {name: Host(directory / name, address) for name, address in addresses.items()}
        target = {"name": "t", "writer_port": free_port(), "any_port": free_port(), "nodes": list(NAMES), "primary": "one", "pinned": False, "shards": []}
        targets = targets or {"t": target}
        hosts = {node: {"ansible_connection": "local", "infra_address": addresses[node], "infra_initial_role": "primary" if node == of["primary"] else "replica", "infra_target": name} for name, of in targets.items() for node in of["nodes"]}
        common = {
            **certs, "ansible_python_interpreter": sys.executable, "infra_targets": targets, "keydb_passwords": PASSWORDS, "keydb_plan": {"workloads": []}, "keydb_port": self.port, "keydb_bind": "{{ infra_address }}",
            "keydb_threads": 1, "keydb_tls": True, "keydb_install_method": "binary", "keydb_carried": {"maxmemory": 2**28, "policy": "noeviction", "policies": [], "events": ""}, "keydb_repl_backlog_bytes": 2**20,
            "redis_exporter_address": "{{ infra_address }}:{{ keydb_port }}", "redis_exporter_tls": True, "redis_exporter_tls_ca": "/etc/keydb/tls/ca.crt", "redis_exporter_password": PASSWORDS["keydb-exporter"]["use"],
            "redis_exporter_listen": f"127.0.0.1:{free_port()}", "haproxy_targets": [{**target, "nodes": [{"name": name, "address": address} for name, address in NAMES.items()]}], "haproxy_keydb_port": self.port, "haproxy_keydb_tls": True,
            "haproxy_check_password": PASSWORDS["keydb-haproxy"]["use"], "haproxy_stats_port": free_port(), "haproxy_maxconn": 100, "haproxy_check_ms": 200,
        }
        self.common = common
        self.inventory = directory / "inventory.json"
        self.inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))

    def play(self, name, tasks, *more, **variables):
        """Runs tasks on a node. @returns exit code, names of the tasks that changed something, the output"""
        path = self.directory / "playbook.json"
        path.write_text(json.dumps([{"hosts": name, "gather_facts": False, "tasks": tasks}]))
        command = self.nodes[name].inside("env", f"ANSIBLE_CONFIG={ROOT / 'ansible.cfg'}", PROGRAM, "-i", self.inventory, "-e", json.dumps(variables), *more, path)
        done = subprocess.run(command, capture_output=True, text=True)
        told = done.stdout + done.stderr
        parts = re.split(r"^(?=TASK \[|RUNNING HANDLER \[|PLAY )", told, flags=re.M)
        return done.returncode, [re.search(r"\[(?:keydb : )?(.*?)\]", part).group(1) for part in parts if re.search(r"^changed: ", part, re.M)], told

    def configure(self, name, *more, **variables):
        """@returns names of the tasks that changed something"""
        code, changed, told = self.play(name, CONFIGURE, *more, **variables)
        assert code == 0, told
        return changed

    def ask(self, name, *words, user="admin", password=PASSWORDS["keydb-admin"]["use"]):
        """The reply of a node to a command, as the role's own module reads it."""
        with Server(self.addresses[name], self.port, user, password, tls_ca=self.common["keydb_tls_ca"]) as server:
            return server.call(*words)

    def start(self, name):
        files = [word for part in ["startup.conf", "settings.conf"] for word in ("--include", f"/etc/keydb/{part}")]
        self.nodes[name].start("setpriv", "--reuid=keydb", "--regid=keydb", "--clear-groups", KEYDB, "/var/lib/keydb/live.conf", *files)
        until(lambda: attempt(lambda: self.ask(name, "PING")) == "PONG", f"{name} answers")


def attempt(act):
    try:
        return act()
    except OSError:
        return None


def until(holds, what):
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise TimeoutError(what)


def read(url):
    return attempt(lambda: urllib.request.urlopen(url).read().decode()) or ""


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    if KEYDB is None:
        pytest.skip("no keydb-server: the role's nodes were not tried")
    directory = tmp_path_factory.mktemp("target")
    try:
        made = Target(directory, certificates(directory / "tls"))
    except OSError as problem:
        pytest.skip(f"{LACKS}: {problem}")
    assert made.configure("one"), "the first run writes everything"
    made.start("one")
    assert made.configure("two")
    made.start("two")
    yield made
    for node in made.nodes.values():
        node.end()


def test_a_replica_follows_over_tls(target):
    until(lambda: "master_link_status:up" in target.ask("two", "INFO", "replication"), "the replica is in step")
    assert target.ask("one", "SET", "k", "v", user="app", password=PASSWORDS["keydb-app"]["use"]) == "OK"
    until(lambda: target.ask("two", "GET", "k") == "v", "the write arrives")


def test_nobody_gets_in_without_tls_or_login(target):
    with socket.create_connection((NAMES["one"], target.port), 5) as plain:
        plain.sendall(b"PING\r\n")
        assert b"PONG" not in (attempt(lambda: plain.recv(100)) or b"")
    with pytest.raises(Exception, match="NOAUTH|NOPERM"):
        target.ask("one", "GET", "k", user=None, password=None)
    code, _, told = target.play("one", [{"keydb_info": {**LOGIN, "tls": True, "tls_ca": "/etc/ssl/certs/ca-certificates.crt"}}])
    assert code != 0 and "certificate verify failed" in told


def test_a_second_run_changes_nothing(target):
    for name in NAMES:
        assert target.configure(name) == []
        assert target.configure(name, "--check") == []


def test_nor_does_a_run_after_a_failover_and_a_rewrite(target):
    until(lambda: "state=online" in target.ask("one", "INFO", "replication"), "the replica is known")
    assert target.ask("one", "FAILOVER", "TIMEOUT", "30000") == "OK"
    until(lambda: "role:master" in target.ask("two", "INFO", "replication"), "the other is the primary")
    for name in NAMES:
        target.ask(name, "CONFIG", "REWRITE")
    live = {name: node.run("cat", "/var/lib/keydb/live.conf") for name, node in target.nodes.items()}
    assert f"replicaof {NAMES['two']} {target.port}" in live["one"] and "replicaof" not in live["two"]
    for name, node in target.nodes.items():
        assert target.configure(name) == [] and target.configure(name, "--check") == []
        assert node.run("cat", "/var/lib/keydb/live.conf") == live[name]
    assert "role:slave" in target.ask("one", "INFO", "replication")


def test_a_new_setting_is_foretold_by_check_mode_and_taken_over_while_it_runs(target):
    wanted = {"keydb_settings_extra": {"timeout": "300"}}
    changes = ["Write what can be set while it runs", "Take the settings over"]
    assert target.configure("two", "--check", **wanted) == changes
    assert target.ask("two", "CONFIG", "GET", "timeout") == ["timeout", "0"]
    assert target.configure("two", **wanted) == changes
    assert target.ask("two", "CONFIG", "GET", "timeout") == ["timeout", "300"]
    assert target.configure("two", **wanted) == []


def test_another_certificate_wants_a_restart_and_does_none(target, tmp_path):
    started = re.search(r"process_id:\d+", target.ask("two", "INFO", "server")).group()
    changed = target.configure("two", **certificates(tmp_path / "tls"), keydb_settings_extra={"timeout": "300"})
    assert changed == ["Write certificate, key and authority", "Note that a restart is wanted"]
    assert started in target.ask("two", "INFO", "server")
    target.nodes["two"].run("test", "-e", "/etc/keydb/restart-wanted")


def test_a_certificate_of_another_host_is_refused(target):
    code, _, told = target.play("one", CONFIGURE, keydb_address="127.0.0.9")
    assert code != 0 and "is not for 127.0.0.9" in " ".join(told.split())


@pytest.fixture(scope="module")
def others(target):
    """The files of exporter and HAProxy on the first node."""
    node, home = target.nodes["one"], target.directory
    tasks = [
        *[{"ansible.builtin.include_vars": str(ROOT / f"roles/{role}/defaults/main.yml")} for role in ["redis_exporter", "haproxy"]],
        *[{"ansible.builtin.template": {"src": str(ROOT / "roles" / file.replace("/", "/templates/")) + ".j2", "dest": str(home / file.split("/")[1]), "mode": "0600"}} for file in OTHERS],
    ]
    code, _, told = target.play("one", tasks, **{name: value for name, value in target.common.items() if name.startswith(("redis_exporter_", "haproxy_"))})
    assert code == 0, told
    return node, home


def test_the_exporter_looks_over_tls(target, others):
    program = shutil.which("prometheus-redis-exporter")
    if program is None:
        pytest.skip("no prometheus-redis-exporter: it was not tried over TLS")
    node, home = others
    [(name, path)] = re.findall(r"^LoadCredential=(.+?):(.+)$", (home / "redis-exporter.service").read_text(), re.M)
    # As systemd gives it: a copy that the exporter's user may read.
    settings = (home / "redis-exporter.env").read_text().replace(f"/run/credentials/redis-exporter.service/{name}", str(home / name))
    (home / name).write_text(node.run("cat", path))
    (home / "redis-exporter.env").write_text(settings)
    node.start("sh", "-c", f"set -a; . {home}/redis-exporter.env; exec {program} --set-client-name")
    until(lambda: re.search(r"^redis_up 1$", read(f"http://{target.common['redis_exporter_listen']}/metrics"), re.M), "the exporter is logged in")


def test_haproxy_finds_the_writer_over_tls(target, others):
    if shutil.which("haproxy") is None:
        pytest.skip("no haproxy: its checks were not tried over TLS")
    node, home = others
    file = home / "haproxy.cfg"
    # This machine may have no user of that name.
    file.write_text("\n".join(line for line in file.read_text().split("\n") if line.strip() not in ("user haproxy", "group haproxy")))
    node.run("haproxy", "-c", "-q", "-f", file)
    node.start("haproxy", "-db", "-f", file)
    ok = r'haproxy_server_check_status\{proxy="t-%s",server="(\w+)",state="L7OK"\} 1'
    metrics = f"http://127.0.0.1:{target.common['haproxy_stats_port']}/metrics"
    until(lambda: set(re.findall(ok % "any", read(metrics))) == set(NAMES), "both nodes are in step")
    until(lambda: len(re.findall(ok % "writer", read(metrics))) == 1, "one of them takes writes")


def test_a_container_runs_as_the_user_whose_files_they_are(target):
    """Without a capability, as its unit starts it: root could not read the settings of another group, nor write into a directory of another user."""
    node, file = target.nodes["one"], target.directory / "container.service"
    tasks = [
        {"ansible.builtin.user": {"name": "keydb"}, "register": "keydb_account"},
        *[{"ansible.builtin.include_vars": str(ROOT / f"roles/keydb/{part}/main.yml")} for part in ["defaults", "vars"]],
        {"ansible.builtin.template": {"src": str(ROOT / "roles/keydb/templates/keydb.service.j2"), "dest": str(file), "mode": "0600"}},
    ]
    code, _, told = target.play("one", tasks, keydb_install_method="container", keydb_container_image="image@sha256:0")
    assert code == 0, told
    user, group = re.search(r" --user (\S+):(\S+) ", file.read_text()).groups()
    node.run("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "sh", "-c", "test -r /etc/keydb/settings.conf && test -w /var/lib/keydb")
