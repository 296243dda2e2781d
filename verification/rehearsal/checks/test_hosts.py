"""What the playbooks promise, seen from the hosts."""

import json
import os
import re
import time
from urllib.parse import quote

import pytest
import yaml

with open(os.environ["REHEARSAL_PASSWORDS"]) as file:
    SECRETS = {each["use"] for each in yaml.safe_load(file)["passwords"].values()}

with open(os.environ["REHEARSAL_INVENTORY"]) as file:
    INVENTORY = yaml.safe_load(file)["all"]

PORTS = INVENTORY["vars"]["infra_ports"]
KEYDB = PORTS["keydb"]
NODES = "keydb"
PROXIES = "shadow_proxy"


@pytest.fixture
def groups(host):
    name = host.backend.get_hostname()
    return [group for group, of in INVENTORY["children"].items() if name in of.get("hosts", {})]


@pytest.fixture
def variables(host):
    own = [of["hosts"][host.backend.get_hostname()] or {} for of in INVENTORY["children"].values() if host.backend.get_hostname() in of.get("hosts", {})]
    return {**INVENTORY["vars"], **{name: value for each in own for name, value in each.items()}}


@pytest.fixture
def only(groups):
    def check(group):
        if group not in groups:
            pytest.skip(f"not in {group}")

    return check


def test_units_run_and_are_sandboxed(host, groups):
    units = {NODES: ["keydb", "redis-exporter", "haproxy"], PROXIES: ["shadow-proxy", "haproxy"], "monitoring": ["prometheus", "prometheus-alertmanager"], "redis": ["redis-server"]}
    for group in set(units) & set(groups):
        for unit in units[group]:
            assert host.service(unit).is_running, unit
    for unit in [{NODES: "keydb", PROXIES: "shadow-proxy"}[group] for group in groups if group in (NODES, PROXIES)]:
        shown = host.check_output(f"systemctl show {unit} --property=NoNewPrivileges,ProtectSystem,LimitNOFILE,Restart,CapabilityBoundingSet")
        assert "NoNewPrivileges=yes" in shown and "ProtectSystem=strict" in shown
        assert re.search(r"Restart=(always|on-failure)", shown)
        assert re.search(r"CapabilityBoundingSet=$", shown, re.M)
        assert int(re.search(r"LimitNOFILE=(\d+)", shown).group(1)) > 10_000


def test_no_secret_is_to_be_seen(host):
    seen = host.check_output("ps -eo args")
    seen += host.check_output("cat /etc/systemd/system/*.service /lib/systemd/system/*.service 2>/dev/null; systemctl show --property=Environment,ExecStart '*.service'")
    seen += host.check_output("journalctl --no-pager --output=cat")
    for secret in SECRETS:
        assert secret not in seen


def test_secrets_are_in_files_that_others_cannot_read(host):
    files = host.check_output("grep -rlE '[0-9a-f]{36}' /etc/keydb /etc/default /etc/haproxy /etc/shadow-proxy /etc/prometheus/tokens /etc/grafana 2>/dev/null || true").split()
    for path in files:
        if any(secret in host.file(path).content_string for secret in SECRETS):
            assert host.file(path).mode & 0o007 == 0, path


def login(host, user, command):
    """Runs a command on this node as a user; the password goes through the environment."""
    with open(os.environ["REHEARSAL_PASSWORDS"]) as file:
        password = yaml.safe_load(file)["passwords"][f"keydb-{user}"]["use"]
    script = (
        "import socket,sys\n"
        f"s=socket.create_connection(('127.0.0.1',{KEYDB}));f=s.makefile('rb')\n"
        f"s.sendall(b'AUTH {user} {password}\\r\\n');f.readline()\n"
        f"s.sendall({(command + chr(13) + chr(10)).encode()!r})\n"
        "line=f.readline()\n"
        "print((f.read(int(line[1:])) if line[:1]==b'$' and line[1:2]!=b'-' else line).decode().strip())"
    )
    result = host.run("python3 - <<'END'\n%s\nEND" % script)
    assert result.rc == 0, result.stderr
    return result.stdout.strip()


def test_settings_are_carried_over_from_the_sources(host, only, variables):
    only(NODES)
    memory = login(host, "admin", "INFO memory")
    assert f"maxmemory:{2 * variables['source_maxmemory'] + 256 * 1024 * 1024}\r\n" in memory + "\r\n"
    assert f"maxmemory_policy:{variables['source_policy']}" in memory


def test_threads_follow_the_cores(host, only):
    only(NODES)
    cores = int(host.check_output("nproc"))
    assert f"server_threads:{min(max(cores // 2, 1), 4)}" in login(host, "admin", "INFO server") + login(host, "admin", "INFO cpu")


def test_one_primary_and_two_replicas_in_step(host, only, variables):
    only(NODES)
    told = login(host, "admin", "INFO replication")
    if variables["infra_initial_role"] == "primary":
        assert "role:master" in told and "connected_slaves:2" in told
    else:
        assert "role:slave" in told and "master_link_status:up" in told


@pytest.mark.parametrize("command", ["EVAL 'return 1' 0", "CONFIG GET dir", "KEYS *", "FLUSHALL", "KEYDB.CRON a", "KEYDB.NHGET a", "DEBUG SLEEP 0"])
def test_applications_are_denied_what_is_dangerous(host, only, command):
    only(NODES)
    assert re.match(r"-(NOPERM|ERR unknown command)", login(host, "app", command))


@pytest.mark.parametrize("command", ["KEYDB.CRON a", "KEYDB.NHGET a", "KEYDB.NHSET a b", "DEBUG SLEEP 0"])
def test_nobody_has_the_commands_that_only_keydb_has(host, only, command):
    only(NODES)
    assert login(host, "admin", command).startswith("-ERR unknown command")


def test_who_does_not_log_in_gets_nothing(host, only):
    only(NODES)
    told = host.run(f"python3 -c \"import socket;s=socket.create_connection(('127.0.0.1',{KEYDB}));s.sendall(b'GET a\\r\\n');print(s.recv(99).decode())\"").stdout
    assert told.startswith("-NOAUTH") or told.startswith("-NOPERM")


def test_haproxy_finds_the_writer(host, groups):
    if not {NODES, PROXIES} & set(groups):
        pytest.skip("no HAProxy here")
    told = host.check_output(f"python3 -c \"import urllib.request as u;print(u.urlopen('http://127.0.0.1:{PORTS['haproxy']}/metrics').read().decode())\"")
    up = {name: int(float(value)) for name, value in re.findall(r'haproxy_backend_active_servers\{proxy="([^"]+)"\} (\S+)', told)}
    assert up["keydb-0-writer"] == 1
    assert up["keydb-0-any"] == 3


def prometheus(host, path):
    """What the API of Prometheus on this host says."""
    return json.loads(host.check_output("python3 -c %s", f"import urllib.request as u;print(u.urlopen('http://127.0.0.1:9090/api/v1/{path}').read().decode())"))["data"]


def soon(host, query, labels, wanted):
    """The labels and values of what Prometheus finds, once they are `wanted`, or after a minute."""
    for _ in range(60):
        told = {tuple(each["metric"].get(label) for label in labels) + (each["value"][1],) for each in prometheus(host, f"query?query={quote(query)}")["result"]}
        if told == wanted:
            break
        time.sleep(1)
    return told


def test_prometheus_reads_every_target(host, only):
    only("monitoring")
    told = prometheus(host, "targets")["activeTargets"]
    assert {each["labels"]["job"] for each in told} == {"redis-exporter", "shadow-proxy", "haproxy", "node"}
    assert [each for each in told if each["health"] == "down"] == []


def test_an_exporter_is_logged_in_at_every_server(host, only):
    """Sources, whose exporter is that of this host, as well as nodes: redis_up is 0 where the login is refused."""
    only("monitoring")
    sources = {("source", shard, f"{of['host']}:{of['port']}", "1") for shard, of in INVENTORY["vars"]["infra_sources"].items()}
    nodes = INVENTORY["children"][NODES]["hosts"].items()
    wanted = sources | {("target", shard, node, "1") for node, of in nodes for shard in INVENTORY["vars"]["infra_targets"][of["infra_target"]]["shards"]}
    assert soon(host, "redis_up", ("side", "shard", "instance"), wanted) == wanted


def test_services_that_have_failed_would_be_told(host, only):
    only("monitoring")
    units = {NODES: "keydb.service", PROXIES: "shadow-proxy.service"}
    wanted = {(name, unit, "1") for group, unit in units.items() for name in INVENTORY["children"][group]["hosts"]}
    query = 'node_systemd_unit_state{name=~"(keydb|shadow-proxy)[.]service",state="active"}'
    assert soon(host, query, ("instance", "name"), wanted) == wanted
