"""The preflight: which hosts it refuses, and in which words. Programs of a host are files on a PATH of the test's."""

import gzip
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading

import pytest
import yaml

import preflight_info
from conftest import ROOT, ansible, free_port, module, refusals

DATA = yaml.safe_load((ROOT / "playbooks/vars/systems.yml").read_text())
SYSTEMS, ARCHITECTURES = DATA["supported_systems"], DATA["supported_architectures"]
CHECKSUM = "sha256:" + "0" * 64
NODE = "nodejs:\n  Installed: {installed}\n  Candidate: {candidate}\n  Version table:\n     24.1.0-1nodesource1 500\n        500 https://example.net nodistro/main\n     {candidate} 500\n"
RELEASE = 'PRETTY_NAME="{name}"\nID={id}\nVERSION_ID="{version}"\n'
# What a machine has, and how the kit names it.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
OTHERS = [
    ("Debian GNU/Linux 11 (bullseye)", "debian", "11"),
    ("Ubuntu 20.04.6 LTS", "ubuntu", "20.04"),
    ("Ubuntu 25.10", "ubuntu", "25.10"),
    ("Amazon Linux 2023", "amzn", "2023"),
    ("Red Hat Enterprise Linux 9.4 (Plow)", "rhel", "9.4"),
    # Its version is that of a supported system.
    ("Another system", "other", "12"),
]


class Machine:
    """Programs that say what a host's would."""

    def __init__(self, directory):
        self.programs = directory / "programs"
        self.programs.mkdir()
        self.release = directory / "os-release"
        self.system("Debian GNU/Linux 12 (bookworm)", "debian", "12")
        self.says("uname", "x86_64")
        self.says("apt-cache", NODE.format(installed="(none)", candidate="20.19.0-1"))
        self.says("apt-get", "")
        self.says("dpkg-query", "")

    def says(self, program, text, code=0):
        path = self.programs / program
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
        path.chmod(0o755)

    def script(self, program, text):
        self.says(program, "")
        (self.programs / program).write_text("#!/bin/sh\n" + text)

    def system(self, name, id, version):
        self.release.write_text(RELEASE.format(name=name, id=id, version=version))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


class Module:
    """Of AnsibleModule, what preflight_info uses."""

    def __init__(self, **params):
        self.params = params

    def run_command(self, command):
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def host(machine, monkeypatch):
    """Makes a host of the machine as it is at that moment."""
    monkeypatch.setenv("PATH", f"{machine.programs}:/usr/bin:/bin")
    return lambda: preflight_info.Host(Module(os_release=str(machine.release)))


def system(host):
    return list(preflight_info.check_system(host(), SYSTEMS, ARCHITECTURES))


def node(host, **given):
    return list(preflight_info.check_node(host(), {"method": "package", "package": "nodejs", "checksum": "", "program": {}, **given}))


def keydb(host, method, **given):
    return list(preflight_info.check_keydb(host(), {"method": method, "url": "", "suite": "bookworm", "version": "6:6.3.4*", "checksum": CHECKSUM, "engine": "podman", "image": "", "program": {}, **given}))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("each", SYSTEMS, ids=[each["name"] for each in SYSTEMS])
def test_supported_systems_pass(machine, host, each, architecture):
    machine.system(each["name"], each["id"], each["version"])
    machine.says("uname", MACHINES[architecture])
    assert system(host) == []


@pytest.mark.parametrize("name,id,version", OTHERS, ids=[each[0] for each in OTHERS])
def test_other_systems_are_refused(machine, host, name, id, version):
    machine.system(name, id, version)
    assert system(host) == [f"the system is {name}; allowed: Debian 12, Debian 13, Ubuntu 22.04, Ubuntu 24.04. Use a host with one of these."]


def test_a_host_without_os_release_is_refused(machine, host):
    machine.release.unlink()
    assert "the system is no /etc/os-release" in system(host)[0]


def test_another_architecture_is_refused(machine, host):
    machine.says("uname", "riscv64")
    assert system(host) == ["the architecture is riscv64; allowed: amd64, arm64. Use a host with one of these."]


def test_an_old_python_is_refused(host, monkeypatch):
    monkeypatch.setattr(preflight_info.sys, "version_info", (3, 8, 10))
    assert "allowed: 3.9 or newer. Set ansible_python_interpreter" in system(host)[0]


@pytest.mark.parametrize(
    "installed,candidate,package,refused",
    [
        ("(none)", "20.19.0-1", "nodejs", None),
        ("(none)", "1:24.1.0-1nodesource1", "nodejs", None),
        # Debian 12's own.
        ("(none)", "18.20.4+dfsg-1~deb12u1", "nodejs", "18.20.4+dfsg-1~deb12u1"),
        ("(none)", "20.10.0-1", "nodejs", "20.10.0-1"),
        # apt leaves what is installed.
        ("18.20.4", "22.1.0-1", "nodejs", "18.20.4"),
        ("22.1.0", "18.20.4", "nodejs", None),
        ("18.20.4", "18.20.4", "nodejs=24.*", None),
        ("(none)", "24.1.0", "nodejs=18.*", "not available"),
    ],
)
def test_the_package_of_node_is_new_enough(machine, host, installed, candidate, package, refused):
    machine.says("apt-cache", NODE.format(installed=installed, candidate=candidate))
    problems = node(host, package=package)
    assert len(problems) == (refused is not None)
    if refused:
        assert problems[0].startswith(f"Node from package {package} is {refused}; allowed: 20.19 or newer. Set migration_kit_node_method: repository, or binary with")


def test_no_package_of_node_is_refused(machine, host):
    machine.says("apt-cache", "")
    assert "Node from package nodejs is not available" in node(host)[0]


def test_the_lists_of_a_new_host_are_read_apart_from_its_own(machine, host, tmp_path):
    """They are read into a directory that is gone afterwards; the host's own are not touched."""
    seen = tmp_path / "seen"
    machine.script("apt-get", f'echo "$@" > {seen}\nlists=${{2#Dir::State::lists=}}\ntest -d "$lists/partial" && touch "$lists/read"\n')
    machine.script("apt-cache", f'case "$2" in Dir::State::lists=*) test -e "${{2#Dir::State::lists=}}/read" && cat <<END\n{NODE.format(installed="(none)", candidate="22.1.0-1")}END\n;; *) echo "nodejs:\n  Installed: (none)\n  Candidate: (none)";; esac\n')
    assert node(host) == []
    directory = re.search("Dir::State::lists=(\\S+)/lists", seen.read_text()).group(1)
    assert not os.path.exists(directory)


@pytest.mark.parametrize("said,refused", [("v20.19.0", False), ("v24.2.0", False), ("v18.20.4", True), (None, True)])
def test_node_that_is_there_is_new_enough(machine, host, monkeypatch, said, refused):
    if said:
        machine.says("node", said)
    else:
        monkeypatch.setattr(preflight_info.shutil, "which", lambda name: None if name == "node" else f"/bin/{name}")
    problems = node(host, method="present")
    assert len(problems) == refused
    if refused:
        assert f"(migration_kit_node_method: present) is {said or 'not available'}; allowed: 20.19 or newer." in problems[0]


BINARY = {"exists": True, "checksum": CHECKSUM, "architecture": "amd64", "node": "22.1.0"}


@pytest.mark.parametrize(
    "given,told",
    [
        ({}, None),
        ({"node": ""}, None),
        ({"exists": False}, "migration_kit_node_src is no file on the controller"),
        ({"checksum": "sha256:1"}, f"migration_kit_node_src has sha256:1; allowed: {CHECKSUM}"),
        ({"architecture": "arm64"}, "migration_kit_node_src is a program for arm64; allowed: amd64, the host's"),
        ({"node": "18.20.4"}, "Node from migration_kit_node_src is 18.20.4; allowed: 20.19 or newer"),
    ],
)
def test_a_binary_of_node(host, given, told):
    problems = node(host, method="binary", checksum=CHECKSUM, program={**BINARY, **given})
    assert len(problems) == (told is not None)
    assert told is None or told in problems[0]


@pytest.mark.parametrize("given,told", [({}, None), ({"exists": False}, "keydb_binary_src is no file"), ({"checksum": "sha256:1"}, "which is keydb_binary_checksum"), ({"architecture": "arm64"}, "is a program for arm64; allowed: amd64")])
def test_a_binary_of_keydb(host, given, told):
    problems = keydb(host, "binary", program={**BINARY, **given})
    assert len(problems) == (told is not None)
    assert told is None or told in problems[0]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A package repository with Node 22, and KeyDB 6.3.4 for bookworm on amd64, 6.3.3 for jammy, another package for noble, and no gzip for focal."""
    root = tmp_path_factory.mktemp("repository")

    def put(path, text, packed=True):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())

    put("dists/bookworm/main/binary-amd64/Packages.gz", "Package: keydb-tools\nVersion: 6:6.3.4-1\n\nPackage: keydb-server\nArchitecture: amd64\nVersion: 6:6.3.4-1~bookworm1\n")
    put("dists/jammy/main/binary-amd64/Packages.gz", "Package: keydb-server\nVersion: 6:6.3.3-1\n\nPackage: keydb-tools\nVersion: 6:6.3.4-1\n")
    put("dists/noble/main/binary-amd64/Packages.gz", "Package: keydb-tools\nVersion: 6:6.3.4-1\n")
    put("dists/focal/main/binary-amd64/Packages", "Package: keydb-server\nVersion: 6:6.3.4-1\n", packed=False)
    put("dists/nodistro/main/binary-amd64/Packages.gz", "Package: nodejs\nVersion: 22.11.0-1nodesource1\n\nPackage: nodejs\nVersion: 22.2.0-1nodesource1\n")
    put("keydb-server_6.3.4_amd64.deb", "")
    put("keydb-server_6.3.4_arm64.deb", "")

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(root))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "suite,machine_name,told",
    [
        ("bookworm", "x86_64", None),
        ("focal", "x86_64", None),
        ("bookworm", "aarch64", "has no packages for bookworm on arm64"),
        ("trixie", "x86_64", "has no packages for trixie on amd64"),
        ("jammy", "x86_64", "for jammy on amd64 is 6:6.3.3-1; allowed: 6:6.3.4*"),
        ("noble", "x86_64", "for noble on amd64 is missing; allowed: 6:6.3.4*"),
    ],
)
def test_the_repository_has_keydb_for_the_host(machine, host, repository, suite, machine_name, told):
    machine.says("uname", machine_name)
    problems = keydb(host, "repository", url=repository, suite=suite)
    assert len(problems) == (told is not None)
    assert told is None or told in problems[0]


def test_the_repository_is_not_asked_for_what_is_installed(machine, host):
    """Or a repository that is down would stop a repeated run."""
    down = f"http://127.0.0.1:{free_port()}"
    machine.says("dpkg-query", "hi 6:6.3.4-1~bookworm1")
    assert keydb(host, "repository", url=down) == []
    machine.says("dpkg-query", "ii 6:6.3.3-1")
    assert "has no packages for bookworm on amd64 that the host can read" in keydb(host, "repository", url=down)[0]


@pytest.mark.parametrize(
    "given,machine_name,told",
    [
        ({}, "x86_64", None),
        ({"version": "24.*"}, "x86_64", "nodejs in Node's repository for nodistro on amd64 is 22.11.0-1nodesource1, 22.2.0-1nodesource1; allowed: 24.*. Set migration_kit_node_major. Or set"),
        ({}, "aarch64", "Node's repository has no packages for nodistro on arm64"),
        ({"checksum": ""}, "x86_64", "migration_kit_node_repository_key_checksum is not set; allowed: sha256:…"),
    ],
)
def test_the_repository_has_node_for_the_host(machine, host, repository, given, machine_name, told):
    machine.says("uname", machine_name)
    problems = node(host, **{"method": "repository", "url": repository, "suite": "nodistro", "version": "22.*", "checksum": CHECKSUM, **given})
    assert len(problems) == (told is not None)
    assert told is None or told in problems[0]


def test_the_repository_is_not_asked_for_node_that_is_installed(machine, host):
    machine.says("dpkg-query", "ii 22.11.0-1nodesource1")
    assert node(host, method="repository", url=f"http://127.0.0.1:{free_port()}", version="22.*") == []


def test_the_key_of_the_repository_is_pinned(host, repository):
    problems = keydb(host, "repository", url=repository, checksum="")
    assert len(problems) == 1 and "keydb_repository_key_checksum is not set" in problems[0]


@pytest.mark.parametrize(
    "path,given,told",
    [
        ("/keydb-server_6.3.4_amd64.deb", {}, None),
        ("/keydb-server_6.3.5_amd64.deb", {}, "the host cannot read keydb_package_url"),
        ("/keydb-server_6.3.4_arm64.deb", {}, "keydb_package_url is a package for arm64; allowed: amd64"),
        ("/keydb-server_6.3.4_amd64.deb", {"checksum": "sha256:1"}, "keydb_package_checksum is sha256:1; allowed: sha256:…"),
    ],
)
def test_a_package_of_keydb(host, repository, path, given, told):
    problems = keydb(host, "package", url=repository + path, **given)
    assert len(problems) == (told is not None)
    assert told is None or told in problems[0]


def test_a_container_of_keydb(machine, host):
    image = "docker.io/eqalpha/keydb@" + CHECKSUM
    assert "the container engine engine-of-the-test is not installed" in keydb(host, "container", engine="engine-of-the-test", image=image)[0]
    machine.says("engine-of-the-test", "")
    assert keydb(host, "container", engine="engine-of-the-test", image=image) == []
    assert "keydb_container_image is keydb:latest; allowed: an image with its digest" in keydb(host, "container", engine="engine-of-the-test", image="keydb:latest")[0]


@pytest.mark.parametrize("machine_code,architecture", [(62, "amd64"), (183, "arm64"), (243, "unknown")])
def test_a_program_is_looked_at_and_not_run(tmp_path, machine_code, architecture):
    path = tmp_path / "node"
    path.write_bytes(b"\x7fELF\x02\x01" + bytes(12) + machine_code.to_bytes(2, "little") + b"https://nodejs.org/download/release/v22.1.0/node-v22.1.0-headers.tar.gz")
    seen = module("program_info", path=str(path))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (seen["architecture"], seen["node"], seen["checksum"]) == (architecture, "22.1.0", f"sha256:{digest}")


SSM = """
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase
DOCUMENTATION = "name: fake_ssm\\nshort_description: An instance without agent\\ndescription: none\\noptions: {}\\n"
class Connection(ConnectionBase):
    transport = "fake_ssm"
    def _connect(self): raise AnsibleConnectionFailure("TargetNotConnected")
    def exec_command(self, *a, **b): self._connect()
    put_file = fetch_file = exec_command
    def close(self): pass
"""


PLAN = {"version": 1, "name": "p", "shards": [{"name": "s", "source": "redis://10.0.0.1:6379", "target": "redis://t.example.net:6379"}]}


def run(machine, tmp_path, book, hosts, *more):
    """Runs a playbook of the kit. @returns exit code, and the output"""
    connections = tmp_path / "connections"
    connections.mkdir(exist_ok=True)
    (connections / "fake_ssm.py").write_text(SSM)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "preflight_os_release": str(machine.release), "keydb_install_method": "binary", "keydb_binary_src": "/bin/true", "keydb_binary_checksum": "", "migration_kit_node_method": "package", "grafana_install_method": "none"}
    (tmp_path / "migration.yaml").write_text(json.dumps(PLAN))
    inventory = tmp_path / "inventory.json"
    inventory.write_text(json.dumps({"all": {"vars": local, "children": {group: {"hosts": members} for group, members in hosts.items()}}}))
    environment = {"MIGRATION_PLAN": str(tmp_path / "migration.yaml"), "ANSIBLE_CONNECTION_PLUGINS": str(connections), "PATH": f"{machine.programs}:{os.environ['PATH']}"}
    return ansible("-i", inventory, *more, ROOT / "playbooks" / f"{book}.yml" if isinstance(book, str) else book, **environment)


def test_every_playbook_that_installs_begins_with_the_preflight_of_its_hosts(tmp_path):
    """As Ansible lists their plays; the test below runs one of them."""
    groups = ["keydb", "sentinel", "haproxy", "shadow_proxy", "shadow_proxy_turn_1", "monitoring", "loadgen", "redis"]
    inventory = tmp_path / "inventory.json"
    inventory.write_text(json.dumps({"all": {"children": {group: {"hosts": {f"host-of-{group}": {}}} for group in groups}}}))
    books = ["site", "keydb", "shadow-proxy", "observability", "upgrade"]
    code, output = ansible("--list-hosts", "-i", inventory, *[ROOT / "playbooks" / f"{book}.yml" for book in books])
    assert code == 0, output
    found = re.split(r"^playbook: .*$", output, flags=re.M)[1:]
    assert len(found) == len(books)
    for book, listed in zip(books, found):
        plays = [(name, set(hosts.split())) for name, hosts in re.findall(r"^  play #\d+ \(.*?\): (.*?)\tTAGS: .*\n    pattern: .*\n    hosts \(\d+\):\n((?:      .+\n)*)", listed, re.M)]
        assert plays[0][0] == "Preflight" and len(plays) > 2, book
        # Passwords are fetched on the controller; the turn of a proxy is given by a task.
        changed = set().union(*[hosts for _, hosts in plays[1:]]) - {"localhost", "host-of-redis", "host-of-shadow_proxy_turn_1"}
        assert changed and changed <= plays[0][1], book


def test_a_refused_host_ends_the_run(machine, tmp_path):
    """No other play begins, and no other host is changed."""
    other = tmp_path / "other"
    other.write_text(RELEASE.format(name="Amazon Linux 2023", id="amzn", version="2023"))
    hosts = {"keydb": {"k1": {"preflight_os_release": str(other)}}, "haproxy": {"fit": {}}}
    code, output = run(machine, tmp_path, "keydb", hosts)
    assert code != 0 and "the system is Amazon Linux 2023" in output
    assert re.findall(r"^PLAY \[(.*)\]", output, re.M) == ["Preflight"]
    assert not re.search(r"changed=[1-9]", output)
    assert "refuses 1 of 2 hosts" in output


def test_all_hosts_are_in_one_message(machine, tmp_path):
    other = tmp_path / "other"
    other.write_text(RELEASE.format(name="Red Hat Enterprise Linux 9.4 (Plow)", id="rhel", version="9.4"))
    machine.says("apt-cache", NODE.format(installed="(none)", candidate="18.20.4"))
    hosts = {
        "keydb": {"k1": {"preflight_os_release": str(other)}, "k2": {}},
        "shadow_proxy": {"p1": {}},
        "monitoring": {"fit": {}, "lost": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": free_port()}, "agentless": {"ansible_connection": "fake_ssm"}},
        # Sources are not the kit's.
        "redis": {"source": {"preflight_os_release": str(other)}},
    }
    code, output = run(machine, tmp_path, "preflight", hosts, "--check")
    assert code != 0
    message = re.search(r"The preflight refuses .*?\n\n", output, re.S).group(0).splitlines()
    assert message[0] == "The preflight refuses 5 of 6 hosts. Nothing was changed."
    found = {line.split(":")[0]: line for line in message[1:] if line}
    assert set(found) == {"k1", "k2", "p1", "lost", "agentless"}
    assert "Red Hat Enterprise Linux 9.4 (Plow); allowed: Debian 12" in found["k1"]
    assert "keydb_binary_src has sha256:" in found["k2"]
    assert "Node from package nodejs is 18.20.4" in found["p1"]
    assert "cannot be checked over ssh" in found["lost"] and "Check its address, the login" in found["lost"]
    assert "TargetNotConnected" in found["agentless"] and "amazon-ssm-agent" in found["agentless"]


def test_fit_hosts_pass_unchanged_and_each_is_checked_once(machine, tmp_path):
    """As in site, which has the preflight of all hosts, and then those of its playbooks."""
    book = tmp_path / "twice.json"
    book.write_text(json.dumps([{"import_playbook": str(ROOT / "playbooks/preflight.yml"), "vars": {"preflight_hosts": hosts}} for hosts in ["all:!redis", "shadow_proxy"]]))
    code, output = run(machine, tmp_path, book, {"shadow_proxy": {"p1": {}}, "monitoring": {"m1": {}}})
    assert code == 0, output
    assert len(re.findall(r"changed=0 .*failed=0", output)) == 2 and not re.search(r"changed=[1-9]", output)
    looked = re.findall(r"^TASK \[preflight : Look at system.*?(?=^TASK )", output, re.M | re.S)
    assert [len(re.findall("^ok:", part, re.M)) for part in looked] == [2, 0]


def test_the_table_of_the_readme_says_the_same():
    rows = re.findall(r"^\| ((?:Debian|Ubuntu)[^|]*) \| ([^|]*) \| ([^|]*) \|$", (ROOT / "README.md").read_text(), re.M)
    assert rows == [(each["name"], ", ".join(ARCHITECTURES), each["tested"]) for each in SYSTEMS]


#: Files with assertions, and why the preflight does not make those of all of them.
ASSERTIONS = {
    **{f"{role}/tasks/assertions.yml": "made by the preflight" for role in ["keydb", "sentinel", "grafana", "alertmanager"]},
    **{f"keydb/tasks/install-{method}.yml": "preflight_info looks at the same" for method in ["binary", "container", "package", "repository"]},
    **{f"migration_kit/tasks/node-{method}.yml": "preflight_info looks at the same" for method in ["binary", "repository"]},
    "bucket_upload/tasks/timer.yml": "the role installs the client first",
    "keydb/tasks/carry-over.yml": "asks the sources",
    "keydb/tasks/hand-over-cluster.yml": "asks the nodes",
    "keydb/tasks/tls.yml": "looks at the certificate on the host",
    "shadow_proxy/tasks/shards.yml": "asks both clusters",
}


def assertions(tasks):
    for task in tasks:
        if "ansible.builtin.assert" in task:
            yield task
        for part in ["block", "rescue", "always"]:
            yield from assertions(task.get(part, []))


def test_every_assertion_of_a_role_is_made_by_the_preflight_or_has_a_reason():
    found = {str(path.relative_to(ROOT / "roles")) for path in ROOT.glob("roles/*/tasks/*.yml") if list(assertions(yaml.safe_load(path.read_text()) or []))}
    assert found == set(ASSERTIONS)
    asked = next(task for task in yaml.safe_load((ROOT / "playbooks/preflight.yml").read_text())[0]["tasks"] if task["name"].startswith("Ask the roles"))
    assert {f"{each['role']}/tasks/assertions.yml" for each in asked["loop"]} == {path for path, reason in ASSERTIONS.items() if reason.startswith("made")}


KEYDB_NODE = {"keydb_install_method": "repository", "infra_target": "t", "infra_initial_role": "active"}


def test_the_preflight_says_what_roles_would_refuse(machine, tmp_path):
    """In one message, with all hosts; what a role refuses after that run was what the preflight had passed."""
    machine.says("dpkg-query", "ii 6:6.3.4-1")
    machine.says("podman", "")
    targets = {"t": {"name": "t.example.net", "nodes": ["k1"], "primary": "k1", "shards": ["s"], "slots": None, "pinned": False, "writer_port": 6379, "any_port": 6380}}
    common = {"infra_targets": targets, "infra_ports": {"keydb": 6390, "sentinel": 26379}, "infra_address": "127.0.0.1"}
    hosts = {
        "keydb": {"k1": {**common, **KEYDB_NODE}},
        "sentinel": {"s1": {**common, "keydb_install_method": "container", "keydb_container_image": "keydb@" + CHECKSUM}},
        "monitoring": {"m1": {"grafana_install_method": "repository"}, "m2": {"grafana_install_method": "package"}, "m3": {"alertmanager_receivers": [{"name": "a"}, {"name": "a"}]}, "fit": {"alertmanager_receivers": [{"name": "a", "webhook_configs": [{"url": "{{ a_password_that_is_fetched_later }}"}]}]}},
    }
    code, output = run(machine, tmp_path, "preflight", hosts)
    assert code != 0 and not re.search(r"changed=[1-9]", output)
    message = re.search(r"The preflight refuses .*?\n\n", output, re.S).group(0).splitlines()
    assert message[0] == "The preflight refuses 5 of 6 hosts. Nothing was changed."
    found = {line.split(":")[0]: line for line in message[1:] if line}
    assert "keydb_initial_role is active, and topology.mode of the plan is primary-replica" in found["k1"]
    assert "Sentinel(s) in the inventory's group sentinel, and a majority" in found["s1"]
    assert "grafana_repository_key_checksum is not set" in found["m1"]
    assert "set grafana_package_url" in found["m2"]
    assert "every receiver needs a name of its own" in found["m3"]


@pytest.mark.parametrize("file,prefix", [("keydb/tasks/install-binary.yml", "keydb_binary"), ("migration_kit/tasks/node-binary.yml", "migration_kit_node")])
def test_a_role_takes_a_program_behind_a_link_as_the_preflight_does(tmp_path, file, prefix):
    program, link = tmp_path / "program-1.2", tmp_path / "program"
    program.write_bytes(b"#!/bin/sh\n")
    link.symlink_to(program)
    looked = yaml.safe_load((ROOT / "roles" / file).read_text())[:2]
    checksums = {"right": "sha256:" + hashlib.sha256(program.read_bytes()).hexdigest(), "wrong": CHECKSUM}
    cases = {name: {f"{prefix}_src": str(link), f"{prefix}_checksum": checksum} for name, checksum in checksums.items()}
    refused = refusals(tmp_path, looked, cases)
    assert refused["right"] is None
    assert "is not the file that" in refused["wrong"]
