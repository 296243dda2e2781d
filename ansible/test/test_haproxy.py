"""The role's HAProxy before two real KeyDB nodes: who takes writes, and who takes over."""

import hashlib
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from conftest import free_port, render
from resp import Server

NODES = [{"name": "one", "address": "127.0.0.1"}, {"name": "two", "address": "127.0.0.2"}]
PASSWORD = "a\"b$c#d'e\\f gé"
WAIT_S = 60
SENTINELS = [{"name": f"s{i}", "address": f"127.0.0.{i}"} for i in (1, 2, 3)]


class Scene:
    """Two nodes at one port of two addresses, and HAProxy with a port for the writer and one for any."""

    def __init__(self, directory):
        self.directory = directory
        self.keydb, self.writer, self.any, self.stats, self.roles, self.sentinel = [free_port() for _ in range(6)]
        self.processes = {}

    def start(self, name, *command):
        self.processes[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def node(self, program, i, active):
        home = self.directory / NODES[i]["name"]
        home.mkdir()
        follows = ["--replicaof", NODES[1 - i]["address"], str(self.keydb)] if active or i == 1 else []
        acl = home / "users.acl"
        acl.write_text("user default on nopass ~* &* +@all\nuser haproxy on #%s resetchannels -@all +info +ping\n" % hashlib.sha256(PASSWORD.encode()).hexdigest())
        both = ["--active-replica", "yes", "--multi-master", "yes"] if active else []
        self.start(NODES[i]["name"], program, "--bind", NODES[i]["address"], "--port", str(self.keydb), "--dir", str(home), "--save", "", "--server-threads", "1", "--aclfile", str(acl), *both, *follows)

    def ask(self, name, *words):
        [address] = [node["address"] for node in NODES if node["name"] == name]
        with Server(address, self.keydb) as server:
            return server.call(*words)

    def sentinels(self, *primaries):
        """Three Sentinels, each of which takes a node for the primary, and never changes its mind in a test."""
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
        for i, (sentinel, primary) in enumerate(zip(SENTINELS, primaries)):
            home = self.directory / f"sentinel{i}"
            home.mkdir()
            (home / "users.acl").write_text(f"user default on nopass ~* &* +@all\nuser haproxy on #{digest} resetchannels -@all +ping +sentinel|get-master-addr-by-name\n")
            conf = home / "sentinel.conf"
            conf.write_text(f"bind {sentinel['address']}\nport {self.sentinel}\naclfile {home}/users.acl\nsentinel monitor t {primary} {self.keydb} 3\nsentinel down-after-milliseconds t 600000\n")
            self.start(f"sentinel {i}", self.program, str(conf), "--sentinel")

    def stop(self, name):
        self.processes[name].terminate()
        self.processes.pop(name).wait()

    def answers(self, port):
        """The address of the node behind HAProxy's port; None where there is none."""
        try:
            with socket.create_connection(("127.0.0.1", port), 2) as connection:
                connection.sendall(b"CONFIG GET bind\r\n")
                words = connection.recv(200).split(b"\r\n")
                return words[4].decode() if len(words) > 4 else None
        except OSError:
            return None

    def up(self, listener):
        """How many nodes of a listener have passed its check: before the first check HAProxy takes each for one that has."""
        try:
            told = urllib.request.urlopen(f"http://127.0.0.1:{self.stats}/metrics").read().decode()
        except OSError:
            return None
        return len(re.findall(r'haproxy_server_check_status\{proxy="%s",server="\w+",state="L7OK"\} 1' % listener, told))

    def until(self, look, wanted):
        for _ in range(WAIT_S * 10):
            if look() == wanted:
                return
            time.sleep(0.1)
        ended = [name for name, process in self.processes.items() if process.poll() is not None]
        raise AssertionError(f"{look()} is not {wanted}; processes that have ended: {ended}")

    def until_answers(self, port, address):
        self.until(lambda: self.answers(port), address)


@pytest.fixture
def stand_up(tmp_path):
    """A function that starts it all for a target; ended with the test."""
    keydb = os.environ.get("KEYDB_SERVER") or shutil.which("keydb-server")
    if keydb is None or shutil.which("haproxy") is None:
        pytest.skip("no keydb-server, or no haproxy: the role's HAProxy was not tried")
    scene = Scene(tmp_path)
    scene.program = keydb

    def start(**target):
        for i in range(2):
            scene.node(keydb, i, target.get("active", False))
        file = tmp_path / "haproxy.cfg"
        whole = {"name": "t", "writer_port": scene.writer, "any_port": scene.any, "primary": "one", "nodes": NODES, **target}
        given = {"haproxy_targets": [whole], "haproxy_keydb_port": scene.keydb, "haproxy_stats_port": scene.stats, "haproxy_check_password": PASSWORD, "haproxy_check_ms": 200, "haproxy_maxconn": 100, "haproxy_roles_port": scene.roles, "haproxy_sentinel_port": scene.sentinel}
        (tmp_path / "servers.state").write_text(render("haproxy", "servers.state.j2", **given))
        config = render("haproxy", "haproxy.cfg.j2", **given).replace("/etc/haproxy/", f"{tmp_path}/")
        # This machine may have no user of that name.
        file.write_text("\n".join(line for line in config.split("\n") if line.strip() not in ("user haproxy", "group haproxy")))
        scene.start("haproxy", "haproxy", "-db", "-f", str(file))
        return scene

    yield start
    for name in list(scene.processes):
        scene.stop(name)


def test_writes_go_to_the_primary(stand_up):
    scene = stand_up()
    scene.until(lambda: (scene.up("t-writer"), scene.up("t-any")), (1, 2))
    scene.until_answers(scene.writer, "127.0.0.1")
    scene.stop("one")
    scene.until(lambda: scene.up("t-writer"), 0)


def test_of_two_nodes_that_call_themselves_the_primary_none_gets_writes(stand_up):
    scene = stand_up()
    scene.until(lambda: scene.up("t-writer"), 1)
    scene.ask("two", "REPLICAOF", "NO", "ONE")
    scene.until(lambda: (scene.up("t-writer"), scene.up("t-any")), (0, 0))
    scene.ask("one", "REPLICAOF", NODES[1]["address"], str(scene.keydb))
    scene.until_answers(scene.writer, "127.0.0.2")


def test_the_writer_is_the_primary_that_most_sentinels_name(stand_up):
    """The first node returns and calls itself the primary; the Sentinels have promoted the second."""
    scene = stand_up(sentinels=SENTINELS)
    scene.until(lambda: scene.up("t-writer"), 0)
    scene.sentinels("127.0.0.2", "127.0.0.2", "127.0.0.1")
    scene.ask("two", "REPLICAOF", "NO", "ONE")
    scene.until_answers(scene.writer, "127.0.0.2")
    # The first is in step with nobody.
    scene.until_answers(scene.any, "127.0.0.2")
    scene.until(lambda: (scene.up("t-writer"), scene.up("t-any")), (1, 1))
    with socket.create_connection(("127.0.0.1", scene.writer), 2) as client:
        client.sendall(b"PING\r\n")
        assert client.recv(10) == b"+PONG\r\n"
        scene.stop("sentinel 0")
        scene.until(lambda: scene.up("t-writer"), 0)
        assert client.recv(10) == b"", "a connection does not outlive the majority"


def test_an_active_node_that_lost_its_peer_takes_everything_over(stand_up):
    scene = stand_up(active=True, pinned=False)
    scene.until(lambda: (scene.up("t-writer"), scene.up("t-any")), (2, 2))
    scene.until_answers(scene.writer, "127.0.0.1")
    scene.stop("one")
    scene.until(lambda: (scene.up("t-writer"), scene.up("t-any")), (1, 1))
    scene.until_answers(scene.writer, "127.0.0.2")
    scene.until_answers(scene.any, "127.0.0.2")


def test_what_has_one_writer_never_gets_another(stand_up):
    scene = stand_up(active=True, pinned=True)
    scene.until(lambda: (scene.up("t-writer"), scene.up("t-any")), (1, 2))
    scene.until_answers(scene.writer, "127.0.0.1")
    scene.stop("one")
    scene.until_answers(scene.any, "127.0.0.2")
    scene.until(lambda: scene.up("t-writer"), 0)
