"""The exporter of the monitoring host at a source that asks for a login: a real Redis, with the user that the rehearsal gives it there."""

import hashlib
import re
import shutil
import subprocess
import urllib.request

import pytest

from conftest import ROOT, free_port, render, wait_for

PASSWORD = "a\"b$c#d'e\\f`g é"
SOURCES = (ROOT.parent / "verification" / "rehearsal" / "sources.yml").read_text()


@pytest.fixture
def server(tmp_path):
    """Starts programs that end with the test."""
    started = []

    def start(*command):
        started.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    yield start
    for process in started:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("password,up", [(PASSWORD, "1"), ("another", "0")])
def test_it_is_up_where_it_is_logged_in(server, tmp_path, password, up):
    programs = [shutil.which(name) for name in ["redis-server", "prometheus-redis-exporter"]]
    if None in programs:
        pytest.skip("no redis-server, or no prometheus-redis-exporter: the login at a source was not tried")
    port, listen = free_port(), free_port()
    rules = re.search(r"user exporter on #\{\{.*?\}\} (.+)", SOURCES).group(1)
    (tmp_path / "users.acl").write_text(f"user default off\nuser exporter on #{hashlib.sha256(PASSWORD.encode()).hexdigest()} {rules}\n")
    server(programs[0], "--port", str(port), "--save", "", "--aclfile", str(tmp_path / "users.acl"))
    file = tmp_path / "environment"
    file.write_text(render("redis_exporter", "redis-exporter.env.j2", redis_exporter_address="", redis_exporter_user="exporter", redis_exporter_password=password, redis_exporter_listen=f"127.0.0.1:{listen}"))
    server("sh", "-c", f"set -a; . {file}; exec {programs[1]} --set-client-name")
    wait_for(port, "redis-server")
    wait_for(listen, "the exporter")
    told = urllib.request.urlopen(f"http://127.0.0.1:{listen}/scrape?target=redis://127.0.0.1:{port}").read().decode()
    assert re.search(rf"^redis_up {up}$", told, re.M), told
    assert ("redis_connected_clients " in told) == (up == "1")
