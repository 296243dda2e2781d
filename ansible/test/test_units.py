"""The units of what runs for long: as systemd wants them, and with what a stolen process must not do taken from them."""

import shutil
import subprocess

import pytest
from conftest import render

UNITS = {
    "shadow_proxy": "shadow-proxy.service",
    "keydb": "keydb.service",
    "redis_exporter": "redis-exporter.service",
}
GIVEN = {
    "shadow_proxy": {"shadow_proxy_shard": "cache-0", "shadow_proxy_state_dir": "/var/lib/proxy-state"},
    "keydb": {"keydb_program": "/usr/bin/keydb-server", "keydb_install_method": "binary"},
    "redis_exporter": {},
}
# systemd's own scale: 10 is a service that may do everything.
MOST_EXPOSED = {"shadow_proxy": 2.5, "keydb": 2.5, "redis_exporter": 3.5}


def unit(role, directory):
    """Writes a role's unit, as its defaults have it. @returns its path"""
    file = directory / UNITS[role]
    file.write_text(render(role, f"{UNITS[role]}.j2", **GIVEN[role]))
    return file


@pytest.mark.parametrize("role", UNITS)
def test_a_unit_takes_from_its_process_what_it_does_not_need(tmp_path, role):
    file = unit(role, tmp_path)
    lines = file.read_text().split("\n")
    for line in ["SystemCallFilter=@system-service", "SystemCallErrorNumber=EPERM", "LimitCORE=0", "ProtectProc=invisible", "RestrictRealtime=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet="]:
        assert line in lines, line
    # Node compiles into memory that it runs; KeyDB asks for an executable stack; the proxy reads the host's boot ID.
    assert not any(line.startswith(("MemoryDenyWriteExecute=", "ProcSubset=")) for line in lines)
    if role == "shadow_proxy":
        assert "RequiresMountsFor=/var/lib/proxy-state" in lines and "OOMScoreAdjust=-800" in lines
    if role == "keydb":
        assert "RequiresMountsFor=/var/lib/keydb" in lines and "OOMScoreAdjust=-800" in lines


@pytest.mark.parametrize("role", UNITS)
def test_systemd_takes_the_unit(tmp_path, role):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: the units were not looked at by systemd")
    file = unit(role, tmp_path)
    started = [line for line in file.read_text().split("\n") if line.startswith("ExecStart=")]
    assert len(started) == 1
    file.write_text(file.read_text().replace(started[0], "ExecStart=/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", file], capture_output=True, text=True)
    assert done.returncode == 0 and UNITS[role] not in done.stderr, done.stderr
    limit = str(int(MOST_EXPOSED[role] * 10))
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={limit}", "--no-pager", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
