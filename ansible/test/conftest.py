"""What the tests have in common: what Ansible makes of a role, a playbook run on this machine, a real server on a free port."""

import contextlib
import importlib
import io
import itertools
import json
import os
import random
import re
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
# Ansible reads it when it is imported.
os.environ["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")

import ansible.module_utils
from ansible.module_utils.testing import patch_module_args
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar, trust_as_template

init_plugin_loader()
LOADER = DataLoader()
# A module finds the kit's module_utils there, as in the archive that Ansible sends.
ansible.module_utils.__path__.append(str(ROOT / "plugins/module_utils"))
sys.path.insert(0, str(ROOT / "plugins/modules"))


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


def of_roles(*roles, parts=("defaults", "vars")):
    """Defaults and variables of roles, as templates that Ansible has not worked out yet. @returns them by name, in a new dictionary"""
    files = [ROOT / "roles" / role / part / "main.yml" for part in parts for role in roles]
    return {name: value for file in files if file.exists() for name, value in (LOADER.load_from_file(str(file), trusted_as_template=True) or {}).items()}


def evaluate(expression, variables):
    """What Ansible makes of an expression. No playbook is started for it: that costs a second of CPU time, and each module half a second more."""
    return Templar(LOADER, variables=variables).template(trust_as_template("{{ %s }}" % expression))


def render(role, template, **variables):
    """@returns the text of a template of a role, with the role's defaults and variables where none are given"""
    path = ROOT / "roles" / role / "templates" / template
    return evaluate("lookup('ansible.builtin.template', '%s')" % path, {**of_roles(role), **variables})


def module(name, check=False, **arguments):
    """Runs a module of the kit in this process; its arguments are checked against its spec. @returns what it gives back, with `failed` and `msg` where it fails"""
    said = io.StringIO()
    with patch_module_args({**arguments, "_ansible_check_mode": check}), contextlib.redirect_stdout(said), pytest.raises(SystemExit):
        importlib.import_module(name).main()
    return {"failed": False, **json.loads(said.getvalue())}


def ansible(*words, **environment):
    """Runs ansible-playbook. @returns exit code, and the output"""
    done = subprocess.run([PROGRAM, *words], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def playbook(tmp_path, plays, **variables):
    """Runs plays against localhost. @returns exit code, and the output with its lines unfolded"""
    path = tmp_path / "playbook.json"
    path.write_text(json.dumps(plays))
    code, output = ansible("-i", "localhost,", "-c", "local", "-e", "ansible_python_interpreter=" + sys.executable, "-e", json.dumps(variables), path)
    return code, " ".join(output.split())


@pytest.fixture
def play(tmp_path):
    """Runs tasks on localhost."""

    def run(tasks, **variables):
        return playbook(tmp_path, [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}], **variables)

    return run


RESULT = re.compile(r"^(?:ok|changed|fatal|failed): \[([^]]+?)(?: -> [^]]+)?\][^\n]*? => (?={)", re.M)


def results(output):
    """What a run printed with ANSIBLE_CALLBACK_RESULT_FORMAT=json. @returns by host, the results of its tasks that have one, in their order"""
    found = {}
    for line in RESULT.finditer(output):
        found.setdefault(line[1], []).append(json.JSONDecoder().raw_decode(output, line.end())[0])
    return found


def refusals(directory, tasks, cases, **common):
    """Runs tasks for several cases at once, each a host with variables of its own.

    @param cases by name of the case: its variables. They come before `common`, such as those of a role
    @returns by name of the case: the message of the task that refused it, or None where no task did
    """
    inventory, path = directory / "cases.json", directory / "cases-playbook.json"
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory.write_text(json.dumps({"all": {"vars": {**common, **local}, "hosts": cases}}))
    path.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [*tasks, {"ansible.builtin.debug": {"msg": "not refused"}}]}]))
    _, output = ansible("-i", inventory, path, ANSIBLE_CALLBACK_RESULT_FORMAT="json")
    last = {name: of[-1]["msg"] for name, of in results(output).items()}
    assert set(last) == set(cases), output
    return {name: None if message == "not refused" else message for name, message in last.items()}


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
