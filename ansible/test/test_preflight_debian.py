"""The preflight, and Node from its repository, in Debian 12 and 13 as debootstrap makes them: their own apt, Python and os-release. They are not booted."""

import email.utils
import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from conftest import PROGRAM, ROOT, free_port

pytestmark = pytest.mark.long

MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
#: What each has of Node, which decides whether it may be a proxy.
SUITES = {"bookworm": r"Node from package nodejs is 18\.\d+\.\d+\S*; allowed: 20\.19 or newer", "trixie": None}


@pytest.fixture(params=SUITES)
def system(request, tmp_path):
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("no root, or no debootstrap: the preflight was not tried in Debian 12 and 13")
    root = tmp_path / request.param
    done = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3,python3-apt,ca-certificates", request.param, root, MIRROR], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    # debootstrap leaves lists; a new instance has none.
    shutil.rmtree(root / "var/lib/apt/lists")
    (root / "var/lib/apt/lists").mkdir()
    # As Ubuntu's update-notifier has it.
    (root / "etc/apt/apt.conf.d/90stamp").write_text('APT::Update::Post-Invoke-Success {"touch /var/lib/apt/stamp";};\n')
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    yield request.param, root
    shutil.rmtree(root)


ENVIRONMENT = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_PIPELINING": "1"}


@pytest.fixture
def inventory(system, tmp_path):
    """An inventory whose one host is the system: its Python runs there, and its directory for copied files has the same path here."""
    _, root = system
    shared = Path(tempfile.mkdtemp(dir=root / "tmp"))
    here = Path("/tmp") / shared.name
    here.symlink_to(shared)
    path, python = tmp_path / "inventory.ini", tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec chroot "{root}" python3 "$@"\n')
    python.chmod(0o755)
    path.write_text(f"[shadow_proxy]\nhost ansible_connection=local ansible_python_interpreter={python} ansible_remote_tmp={here}\n")
    yield path
    here.unlink()


def files(root):
    """Every file below the root, with size and time of its last change. A run of Python may write what it has compiled."""
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in Path(root).rglob("*") if not path.is_dir() and path.suffix != ".pyc"}


def test_the_preflight_in_a_new_system(system, inventory):
    suite, root = system
    before = files(root)
    given = ["-i", inventory, "-e", "migration_kit_node_method=package"]
    done = subprocess.run([PROGRAM, *given, ROOT / "playbooks/preflight.yml"], env=ENVIRONMENT, capture_output=True, text=True)
    output = done.stdout + done.stderr
    if SUITES[suite] is None:
        assert done.returncode == 0, output
    else:
        assert done.returncode != 0 and re.search(SUITES[suite], output), output
        assert "refuses 1 of 1 hosts" in output and "the system is" not in output
    assert "changed=0" in output
    assert files(root) == before


@pytest.fixture
def nodesource(tmp_path):
    """A signed repository with a package nodejs 24 that says its version. Its URL, its key, and the key's checksum."""
    if shutil.which("gpg") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("no gpg, or no dpkg-deb: Node was not installed from a repository")
    root, home = tmp_path / "nodesource", tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    package = tmp_path / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "usr/bin").mkdir(parents=True)
    (package / "DEBIAN/control").write_text("Package: nodejs\nVersion: 24.11.0-1nodesource1\nArchitecture: amd64\nMaintainer: nobody <nobody@example.net>\nDescription: says its version\n")
    (package / "usr/bin/node").write_text("#!/bin/sh\necho v24.11.0\n")
    (package / "usr/bin/node").chmod(0o755)
    index = root / "dists/nodistro/main/binary-amd64"
    index.mkdir(parents=True)
    deb = root / "nodejs.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", package, deb], check=True, capture_output=True)
    checksum = hashlib.sha256(deb.read_bytes()).hexdigest()
    packages = f"{(package / 'DEBIAN/control').read_text()}Filename: nodejs.deb\nSize: {deb.stat().st_size}\nSHA256: {checksum}\n"
    (index / "Packages").write_text(packages)
    sums = f" {hashlib.sha256(packages.encode()).hexdigest()} {len(packages.encode())} main/binary-amd64/Packages\n"
    date = email.utils.formatdate(usegmt=True)
    release = root / "dists/nodistro/Release"
    release.write_text(f"Suite: nodistro\nCodename: nodistro\nDate: {date}\nArchitectures: amd64\nComponents: main\nSHA256:\n{sums}")
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""]
    subprocess.run([*gpg, "--quick-generate-key", "repository@example.net", "rsa2048", "sign"], check=True, capture_output=True)
    subprocess.run([*gpg, "--clearsign", "--output", release.with_name("InRelease"), release], check=True, capture_output=True)
    key = root / "key.asc"
    subprocess.run([*gpg, "--armor", "--output", key, "--export"], check=True, capture_output=True)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(root))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    yield {"url": url, "key_url": f"{url}/key.asc", "key_checksum": "sha256:" + hashlib.sha256(key.read_bytes()).hexdigest()}
    server.shutdown()
    server.server_close()


def test_node_is_installed_from_its_repository(system, inventory, nodesource, tmp_path):
    _, root = system
    play = tmp_path / "node.yml"
    tasks = ["roles/migration_kit/tasks/preflight.yml", "roles/migration_kit/tasks/node-repository.yml"]
    play.write_text(
        json.dumps(
            [
                {
                    "hosts": "shadow_proxy",
                    "gather_facts": False,
                    "vars_files": [str(ROOT / "roles/migration_kit/defaults/main.yml")],
                    "tasks": [
                        {"ansible.builtin.include_tasks": str(ROOT / tasks[0])},
                        {"ansible.builtin.assert": {"that": "migration_kit_preflight.problems == []", "fail_msg": "{{ migration_kit_preflight.problems }}"}},
                        {"ansible.builtin.include_tasks": str(ROOT / tasks[1])},
                    ],
                }
            ]
        )
    )
    given = json.dumps({f"migration_kit_node_repository_{name}": value for name, value in nodesource.items()})

    def run(*more):
        done = subprocess.run([PROGRAM, "-i", inventory, "-e", given, *more, play], env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return int(re.search(r"changed=(\d+)", done.stdout).group(1))

    assert run("--check") > 0
    assert run() > 0
    installed = subprocess.run(["chroot", root, "node", "--version"], capture_output=True, text=True)
    assert installed.stdout == "v24.11.0\n"
    assert run() == 0
