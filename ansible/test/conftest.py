"""What the tests have in common: a playbook run on this machine, a real server on a free port."""

import itertools
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# For `from resp import Server`: the client that the modules have.
sys.path.insert(0, str(ROOT / "plugins/module_utils"))
# ansible-playbook stands beside this Python, whatever the PATH says.
PROGRAM = Path(sys.executable).parent / "ansible-playbook"


def pytest_configure(config):
    config.addinivalue_line("markers", "long: not in the default run; `npm run test:ansible -- -m long` runs these")


# Below the ports that systems give to outgoing connections, from 32,768 on: such a connection would take the port before
# its server listens. A cluster's nodes have ports from 10,000 on, and their buses 10,000 above (keydb_nodes.py).
LOWEST_PORT, PORTS = 25_000, 5_000
given_ports = itertools.count(random.randrange(PORTS))


def free_port():
    """A port that nobody listens at, another one each time."""
    for number in itertools.islice(given_ports, PORTS):
        port = LOWEST_PORT + number % PORTS
        with socket.socket() as free:
            try:
                free.bind(("", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port from {LOWEST_PORT} to {LOWEST_PORT + PORTS - 1}")


def wait_for(port, name):
    """Until somebody listens there."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"{name} did not start")


def playbook(tmp_path, plays, **variables):
    """Runs plays against localhost. @returns exit code, and the output with its lines unfolded"""
    path = tmp_path / "playbook.json"
    path.write_text(json.dumps(plays))
    command = [PROGRAM, "-i", "localhost,", "-c", "local", "-e", "ansible_python_interpreter=" + sys.executable, "-e", json.dumps(variables), path]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}, capture_output=True, text=True)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def play(tmp_path):
    """Runs tasks on localhost."""

    def run(tasks, **variables):
        return playbook(tmp_path, [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}], **variables)

    return run


@pytest.fixture(scope="session")
def aws():
    """The address of a server that speaks AWS's APIs (moto)."""
    port = free_port()
    server = subprocess.Popen([PROGRAM.parent / "moto_server", "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(port, "moto_server")
    yield f"http://127.0.0.1:{port}"
    server.terminate()
    server.wait()


@pytest.fixture
def keydb(tmp_path):
    """A KeyDB started as the role's unit starts it; its port and where its live.conf is."""
    program = os.environ.get("KEYDB_SERVER") or shutil.which("keydb-server")
    if program is None:
        pytest.skip("no keydb-server: the modules were not tried against it")
    port = free_port()
    (tmp_path / "startup.conf").write_text(f"bind 127.0.0.1\nport {port}\ndir {tmp_path}\nserver-threads 1\n")
    (tmp_path / "settings.conf").write_text('maxmemory 100mb\nsave ""\n')
    live = tmp_path / "live.conf"
    live.write_text("")

    def start():
        return subprocess.Popen([program, live, "--include", tmp_path / "startup.conf", "--include", tmp_path / "settings.conf"], stdout=subprocess.DEVNULL)

    class Server:
        """The process can be replaced by `restart`."""

        def __init__(self):
            self.port, self.live, self.process = port, live, start()
            wait_for(port, "keydb-server")

        def restart(self):
            self.process.terminate()
            self.process.wait()
            self.process = start()
            wait_for(port, "keydb-server")

    server = Server()
    yield server
    server.process.terminate()
    server.process.wait()
