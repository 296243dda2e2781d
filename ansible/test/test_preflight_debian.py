"""The preflight in Debian 12 and 13 as debootstrap makes them: their own apt, Python and os-release. They are not booted: the preflight needs no services."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import PROGRAM, ROOT

pytestmark = pytest.mark.long

MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
#: What each has of Node, which decides whether it may be a proxy.
SUITES = {"bookworm": r"Node from package nodejs is 18\.\d+\.\d+\S*; allowed: 20\.11 or newer", "trixie": None}


@pytest.fixture(params=SUITES)
def system(request, tmp_path):
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("no root, or no debootstrap: the preflight was not tried in Debian 12 and 13")
    root = tmp_path / request.param
    done = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3,ca-certificates", request.param, root, MIRROR], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    # debootstrap leaves lists; a new instance has none.
    shutil.rmtree(root / "var/lib/apt/lists")
    (root / "var/lib/apt/lists").mkdir()
    # As Ubuntu's update-notifier has it.
    (root / "etc/apt/apt.conf.d/90stamp").write_text('APT::Update::Post-Invoke-Success {"touch /var/lib/apt/stamp";};\n')
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    yield request.param, root
    shutil.rmtree(root)


def files(root):
    """Every file below the root, with size and time of its last change. A run of Python may write what it has compiled."""
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in Path(root).rglob("*") if not path.is_dir() and path.suffix != ".pyc"}


def test_the_preflight_in_a_new_system(system, tmp_path):
    suite, root = system
    inventory = tmp_path / "inventory.ini"
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec chroot "{root}" python3 "$@"\n')
    python.chmod(0o755)
    inventory.write_text(f"[shadow_proxy]\nhost ansible_connection=local ansible_python_interpreter={python}\n")
    before = files(root)
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_PIPELINING": "1"}
    done = subprocess.run([PROGRAM, "-i", inventory, ROOT / "playbooks/preflight.yml"], env=env, capture_output=True, text=True)
    output = done.stdout + done.stderr
    if SUITES[suite] is None:
        assert done.returncode == 0, output
    else:
        assert done.returncode != 0 and re.search(SUITES[suite], output), output
        assert "refuses 1 of 1 hosts" in output and "the system is" not in output
    assert "changed=0" in output
    assert files(root) == before
