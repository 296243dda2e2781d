"""KeyDB nodes in cluster mode on loopback, one port each."""

import itertools
import os
import random
import shutil
import socket
import subprocess
import time

import pytest

from resp import Server, ServerError

KEYDB = os.environ.get("KEYDB_SERVER") or shutil.which("keydb-server")
REDIS = shutil.which("redis-server")
NODE_TIMEOUT_MS = 1500


LOWEST_PORT, PORTS = 10_000, 5_000
given_ports = itertools.count(random.randrange(PORTS))


def port_with_bus():
    """A free port, whose bus port (10000 above) is free, too; another one each time."""
    for number in itertools.islice(given_ports, PORTS):
        port = LOWEST_PORT + number % PORTS
        with socket.socket() as client, socket.socket() as bus:
            try:
                client.bind(("", port))
                bus.bind(("", port + 10_000))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port from {LOWEST_PORT} to {LOWEST_PORT + PORTS - 1}")


class Nodes:
    """Servers by name, in directories of their own."""

    def __init__(self, directory):
        self.directory, self.ports, self.servers = directory, {}, {}

    def start(self, *names, mode="yes", program=KEYDB):
        """New nodes, or those that were ended, with what they have on disk."""
        for name in names:
            port = self.ports.setdefault(name, port_with_bus())
            home = self.directory / name
            home.mkdir(exist_ok=True)
            words = ["--bind", "127.0.0.1", "--port", port, "--dir", home, "--save", "", "--cluster-enabled", mode, "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", NODE_TIMEOUT_MS]
            self.servers[name] = subprocess.Popen([program, *map(str, words)], cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in names:
            until(lambda: self.try_ask(name, "PING") == "PONG", f"{name} answers")

    def join(self, slots):
        """Makes a cluster of nodes with these slots, without replicas."""
        first = next(iter(slots))
        for name, (begin, end) in slots.items():
            self.ask(name, "CLUSTER", "ADDSLOTS", *range(begin, end + 1))
        for name in slots:
            if name != first:
                self.ask(name, "CLUSTER", "MEET", "127.0.0.1", self.ports[first])
        until(lambda: all("cluster_state:ok" in self.ask(name, "CLUSTER", "INFO") for name in slots), "the cluster is ok")

    def ask(self, name, *words):
        with Server("127.0.0.1", self.ports[name]) as server:
            return server.call(*words)

    def try_ask(self, name, *words):
        try:
            return self.ask(name, *words)
        except (OSError, ServerError):
            return None

    def end(self, *names):
        for name in names:
            self.servers[name].kill()
            self.servers.pop(name).wait()

    def described(self, name):
        """What the servers themselves say: each node's master, slots and config epoch, sorted."""
        lines = [line.split() for line in self.ask(name, "CLUSTER", "NODES").splitlines()]
        return sorted((words[0], words[3], words[6], *words[8:]) for words in lines)


def until(holds, what):
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise TimeoutError(what)


@pytest.fixture
def nodes(tmp_path):
    if KEYDB is None:
        pytest.skip("no keydb-server: no cluster was made")
    made = Nodes(tmp_path)
    yield made
    made.end(*list(made.servers))
