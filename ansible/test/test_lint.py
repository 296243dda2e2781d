"""Playbooks and roles, read by ansible-lint at its production profile."""

import os
import subprocess

from conftest import PROGRAM, ROOT


def test_ansible_lint_finds_nothing():
    # It starts the ansible-playbook of its PATH, to check the syntax of each playbook and role.
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    done = subprocess.run([PROGRAM.parent / "ansible-lint", "--nocolor", "-q"], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
