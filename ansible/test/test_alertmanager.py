"""Prometheus and Alertmanager as their roles configure them, started as their units start them: alerts arrive, and a second run changes nothing."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from conftest import PROGRAM, ROOT, evaluate, free_port, of_roles, refusals, wait_for
from host import Host

sys.path.insert(0, str(ROOT / "plugins/filter"))
from hide_values import hide_values

KIT = ROOT.parent / "dashboards" / "prometheus"
EXAMPLE = yaml.safe_load((KIT / "alertmanager.example.yml").read_text())
SECRET = "Zq3/s3cr3t"
LACKS = "no root, or no mounts of its own for it, here: Alertmanager as the role makes it was not tried"


def test_values_of_receivers_are_shown_as_their_place():
    receivers = [{"name": "on-call", "webhook_configs": [{"url": 'http://h:x/a"b', "max_alerts": 0}]}, {"name": "b", "x_configs": "longer-than-ten"}]
    told = hide_values('parse "http://h:x/a\\"b": on-call; cannot unmarshal !!str `longer-...` into []', {"r": receivers})
    assert told == 'parse "<r[0].webhook_configs[0].url>": on-call; cannot unmarshal !!str `<r[1].x_configs>` into []'
    assert hide_values("as it is", {"r": []}) == "as it is"


def worked_out(expression, **variables):
    """What the role works out."""
    return evaluate(expression, {**of_roles("alertmanager"), **variables})


def test_without_receivers_the_route_says_so_and_is_that_of_the_example():
    config = worked_out("alertmanager_config")
    assert config == {"route": config["route"], "receivers": [{"name": "nobody-is-notified"}]}
    assert worked_out("alertmanager_quiet") == []
    assert config["route"] == {**{key: value for key, value in EXAMPLE["route"].items() if key != "routes"}, "receiver": "nobody-is-notified"}


@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
@pytest.mark.parametrize("listen,asked", [("0.0.0.0:9093", "127.0.0.1:9093"), (":9093", "127.0.0.1:9093"), ("[::]:9093", "127.0.0.1:9093"), ("10.0.0.1:9093", "10.0.0.1:9093")])
def test_it_is_asked_where_it_listens(listen, asked):
    assert worked_out("alertmanager_url", alertmanager_listen=listen) == f"http://{asked}"


def test_receivers_routes_and_global_options_are_alertmanagers_own(tmp_path):
    receivers = [{"name": "team", "webhook_configs": [{"url": "http://127.0.0.1/a"}]}, {"name": "nobody"}, {"name": "empty", "email_configs": []}]
    routes = [{"matchers": ["severity = critical"], "receiver": "nobody"}]
    given = {"alertmanager_receivers": receivers, "alertmanager_routes": routes, "alertmanager_route": {"group_wait": "5s"}, "alertmanager_global": {"smtp_from": "a@b.c"}, "alertmanager_inhibit_rules": EXAMPLE["inhibit_rules"]}
    assert worked_out("alertmanager_quiet", **given) == ["nobody", "empty"]
    config = worked_out("alertmanager_config", **given)
    assert config["route"] == {"receiver": "team", "group_by": ["alertname", "shard", "instance"], "group_wait": "5s", "group_interval": "5m", "repeat_interval": "12h", "routes": routes}
    assert (config["receivers"], config["global"], config["inhibit_rules"]) == (receivers, {"smtp_from": "a@b.c"}, EXAMPLE["inhibit_rules"])
    if shutil.which("amtool") is None:
        pytest.skip("no amtool: Alertmanager's configuration was not tried against it")
    (tmp_path / "config.yml").write_text(json.dumps(config))
    done = subprocess.run(["amtool", "check-config", tmp_path / "config.yml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_receiver_without_a_name_of_its_own_is_refused(tmp_path):
    [check, *_] = yaml.safe_load((ROOT / "roles/alertmanager/tasks/assertions.yml").read_text())
    cases = [[{"webhook_configs": []}], [{"name": "a"}, {"name": "a"}], [{"name": 7}], [{"name": "a"}, {"name": "b"}], []]
    told = refusals(tmp_path, [check], {f"case{i}": {"alertmanager_receivers": case} for i, case in enumerate(cases)}, **of_roles("alertmanager"))
    assert [message and message.partition("in this order: ")[2] for message in (told[f"case{i}"] for i in range(len(cases)))] == ['[""].', '["a", "a"].', "[7].", None, None]


def test_an_alertmanager_of_your_own_is_a_target(tmp_path):
    [check] = yaml.safe_load((ROOT / "playbooks/observability.yml").read_text())[-1]["pre_tasks"]
    right = [..., None, [], [{"targets": ["a.example.net:9093", "[fd00::1]:9093"], "labels": {"x": "y"}}]]
    wrong = ["a:9093", [{"targets": ["http://a:9093"]}], [{"targets": ["a"]}], [{"targets": "a:9093"}], ["a:9093"], [{}]]
    cases = {f"case{i}": {} if case is ... else {"alertmanagers": case} for i, case in enumerate(right + wrong)}
    told = refusals(tmp_path, [check], cases)
    assert [told[name] for name in cases] == [None] * len(right) + [f'alertmanagers is {json.dumps(each)}: write a list of targets, HOST:PORT without http://, such as [{{targets: ["alertmanager.example.net:9093"]}}].' for each in wrong]


#: A systemd for the units of packages, where there is none: it starts what they name, as the user that they name, and signals it.
SYSTEMCTL = r'''#!/usr/bin/env python3
import os, re, shlex, signal, subprocess, sys, time
from pathlib import Path
here = Path(__file__).parent
verb, unit = sys.argv[1], sys.argv[2].removesuffix(".service")
with open(here / "calls", "a") as calls:
    calls.write(f"{verb} {unit}\n")
pid, enabled = here / f"{unit}.pid", here / f"{unit}.disabled"
def running():
    try:
        return "Z" not in Path(f"/proc/{pid.read_text()}/stat").read_text().rpartition(")")[2][:2]
    except OSError:
        return False
def stop():
    if running():
        os.kill(int(pid.read_text()), signal.SIGTERM)
    while running():
        time.sleep(0.05)
def start():
    if running():
        return
    said = Path(f"/lib/systemd/system/{unit}.service").read_text()
    line = re.search(r"^ExecStart=(.*)$", said, re.M)[1]
    user = re.search(r"^User=(.*)$", said, re.M)[1]
    settings = Path(re.search(r"^EnvironmentFile=(.*)$", said, re.M)[1]).read_text()
    [arguments] = shlex.split(re.search(r'^ARGS=(".*?")', settings, re.M | re.S)[1])
    command = line.replace("$ARGS", arguments).split()
    log = open(here / f"{unit}.log", "a")
    process = subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")
    pid.write_text(str(process.pid))
if verb == "show":
    print(f"LoadState=loaded\nActiveState={'active' if running() else 'inactive'}\nSubState=x\nUnitFileState={'disabled' if enabled.exists() else 'enabled'}")
elif verb == "is-enabled":
    print("disabled" if enabled.exists() else "enabled")
    sys.exit(1 if enabled.exists() else 0)
elif verb == "is-active":
    sys.exit(0 if running() else 3)
elif verb == "enable":
    enabled.unlink(missing_ok=True)
elif verb == "disable":
    enabled.touch()
elif verb == "reload":
    os.kill(int(pid.read_text()), signal.SIGHUP)
elif verb in ("start", "stop", "restart"):
    if verb != "start":
        stop()
    if verb != "stop":
        start()
'''


class Web:
    """An HTTP server on loopback: a receiver of alerts, which keeps what was posted by whom it lets in, and a process that Prometheus reads."""

    def __init__(self):
        self.posted, self.metrics, self.status = [], "", 200
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = web.status if self.headers["Authorization"] == f"Bearer {SECRET}" else 401
                if status == 200:
                    web.posted += [(body["receiver"], alert["status"], alert) for alert in body["alerts"]]
                self.send_response(status)
                self.end_headers()

            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(web.metrics.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, name, status, seconds):
        """@returns receiver and alert of the first notification of it, once there is one"""
        for _ in range(seconds * 10):
            for receiver, told, alert in self.posted:
                if (alert["labels"]["alertname"], told) == (name, status):
                    return receiver, alert
            time.sleep(0.1)
        raise TimeoutError(f"no {name} {status}, but {[(a['labels'], told) for _, told, a in self.posted]}")


class Monitoring:
    """The monitoring host."""

    def __init__(self, directory):
        self.directory, self.web = directory, Web()
        self.playbooks = directory / "ansible" / "playbooks"
        self.playbooks.mkdir(parents=True)
        for name in ["group_vars", "test-alert.yml"]:
            (self.playbooks / name).symlink_to(ROOT / "playbooks" / name)
        (directory / "dashboards").symlink_to(ROOT.parent / "dashboards")
        for name, roles in {"monitoring": ["prometheus", "alertmanager"], "alertmanager": ["alertmanager"]}.items():
            (self.playbooks / f"{name}.json").write_text(json.dumps([{"hosts": "monitoring", "gather_facts": False, "roles": roles}]))
        self.ports = {name: free_port() for name in ["prometheus", "alertmanager", "grafana", "keydb", "haproxy", "redis_exporter", "node_exporter"]}
        proxy = {"infra_address": "127.0.0.1", "infra_admin_port": self.web.port, "infra_shard": "cache-0"}
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        variables = {**local, "infra_ports": self.ports, "infra_migration": "m", "infra_targets": {}, "infra_sources": {}, "passwords": {"proxy-admin-token": {"use": "x"}}}
        hosts = {"monitoring": {"hosts": {"monitoring": {"infra_address": "127.0.0.1"}}}, "shadow_proxy": {"hosts": {"proxy-cache-0": proxy}}}
        self.inventory = directory / "inventory.json"
        self.inventory.write_text(json.dumps({"all": {"vars": variables, "children": hosts}}))
        # Prometheus' targets follow from it, too: from the nodes of its Redis Cluster, if it has one.
        self.plan = directory / "migration.yaml"
        self.plan.write_text(json.dumps({"version": 1, "name": "m", "shards": [{"name": "cache-0", "source": "redis://10.0.0.1:6379", "target": "redis://t.example.net:6379"}]}))
        self.units = directory / "units"
        self.units.mkdir()
        (self.units / "systemctl").write_text(SYSTEMCTL)
        (self.units / "systemctl").chmod(0o755)
        self.host = Host(directory / "host", "127.0.0.1")
        # As the packages do.
        for name in ["metrics2", "alertmanager"]:
            self.host.run("install", "-d", "-o", "prometheus", "-g", "prometheus", f"/var/lib/prometheus/{name}")

    #: In a hurry: production's are 15 s, 30 s and 5 min.
    HURRY = {
        "prometheus_config": "{{ lookup('ansible.builtin.file', playbook_dir ~ '/../../dashboards/prometheus/prometheus.yml') | from_yaml | combine({'global': {'scrape_interval': '1s', 'evaluation_interval': '1s', 'external_labels': {'migration': infra_migration, 'runbooks': 'https://runbooks.example.net'}}}, recursive=true) }}",
        "alertmanager_route": {"group_wait": "1s", "group_interval": "2s"},
    }

    def receivers(self):
        login = {"authorization": {"credentials": SECRET}}
        return {
            "alertmanager_receivers": [{"name": name, "webhook_configs": [{"url": f"http://127.0.0.1:{self.web.port}/{name}", "http_config": login}]} for name in ["team", "on-call"]],
            "alertmanager_routes": [{"matchers": ["severity = critical"], "receiver": "on-call"}],
        }

    def play(self, name, *more, **variables):
        """@returns exit code, names of the tasks that changed something, the output"""
        command = self.host.inside("env", f"PATH={self.units}:{os.environ['PATH']}", f"ANSIBLE_CONFIG={ROOT / 'ansible.cfg'}", "ANSIBLE_NOCOLOR=1", PROGRAM, "-i", self.inventory, "--skip-tags", "packages", "-e", json.dumps({**self.HURRY, "migration_plan_file": str(self.plan), **variables}), *more, self.playbooks / name)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        told = done.stdout + done.stderr
        parts = re.split(r"^(?=TASK \[|RUNNING HANDLER \[|PLAY )", told, flags=re.M)
        changed = [re.search(r"\[(?:\w+ : )?(.*?)\]", part).group(1) for part in parts if re.search(r"^changed: ", part, re.M)]
        return done.returncode, changed, " ".join(told.split())

    def configure(self, *more, **variables):
        """@returns names of the tasks that changed something, and the output"""
        code, changed, told = self.play("monitoring.json", *more, **variables)
        assert code == 0, told
        return changed, told

    def ask(self, program, path):
        return json.loads(urllib.request.urlopen(f"http://127.0.0.1:{self.ports[program]}{path}", timeout=5).read())

    def end(self):
        for file in self.units.glob("*.pid"):
            try:
                os.kill(int(file.read_text()), signal.SIGTERM)
            except ProcessLookupError:
                pass
        self.host.end()
        self.web.server.shutdown()


@pytest.fixture(scope="module")
def monitoring(tmp_path_factory):
    """Installed and running, without a receiver."""
    programs = ["prometheus", "prometheus-alertmanager", "amtool", "promtool", "setpriv"]
    lacking = [name for name in programs if shutil.which(name) is None]
    if lacking:
        pytest.skip(f"no {', '.join(lacking)}: Alertmanager as the role makes it was not tried")
    try:
        made = Monitoring(tmp_path_factory.mktemp("monitoring"))
    except (OSError, AssertionError) as problem:
        pytest.skip(f"{LACKS}: {problem}")
    yield made
    made.end()


@pytest.mark.long
class TestOnAHost:
    """In this order: each begins where the one before ended."""

    def test_without_receivers_it_says_that_nobody_is_notified(self, monitoring):
        changed, told = monitoring.configure()
        assert {"Write its configuration", "Write its arguments", "Start Alertmanager, and at every boot"} <= set(changed)
        assert "!!! NOBODY IS NOTIFIED OF ALERTS" in told
        code, _, told = monitoring.play("test-alert.yml")
        assert code != 0 and "no receiver of http://127.0.0.1:" in told and "set alertmanager_receivers" in told

    def test_receivers_are_taken_over_by_a_reload_and_their_secrets_kept(self, monitoring):
        changed, told = monitoring.configure(**monitoring.receivers())
        assert changed == ["Write its configuration", "Have Alertmanager read again"]
        assert "NOBODY IS NOTIFIED" not in told and SECRET not in told
        assert monitoring.host.run("stat", "-c", "%a %U %G", "/etc/prometheus/alertmanager.yml") == "640 root prometheus\n"
        assert SECRET not in json.dumps(monitoring.ask("alertmanager", "/api/v2/status"))
        assert "reload prometheus-alertmanager" in (monitoring.units / "calls").read_text()

    def test_a_second_run_changes_nothing(self, monitoring):
        assert monitoring.configure(**monitoring.receivers())[0] == []
        assert monitoring.configure("--check", **monitoring.receivers())[0] == []

    def test_a_secret_of_a_vault_is_the_same_secret(self, monitoring):
        """What is encrypted in a file of variables would be written as it is there, and the login be refused."""
        password, file = monitoring.directory / "vault-password", monitoring.directory / "vault.yml"
        password.write_text("of the vault")
        file.write_text(subprocess.run([PROGRAM.parent / "ansible-vault", "encrypt_string", "--vault-password-file", password, "--name", "hook_login", SECRET], capture_output=True, text=True, check=True).stdout)
        receivers = json.loads(json.dumps(monitoring.receivers()).replace(SECRET, "{{ hook_login }}"))
        assert monitoring.configure("--vault-password-file", password, "-e", f"@{file}", **receivers)[0] == []

    def test_an_alert_of_the_kit_arrives_and_its_end_arrives(self, monitoring):
        monitoring.web.metrics = 'shadow_proxy_server_silent_seconds{shard="cache-0",server="source"} 9\n'
        receiver, alert = monitoring.web.wait("AuthorityDown", "firing", 60)
        assert receiver == "on-call"
        assert alert["labels"]["shard"] == "cache-0" and alert["labels"]["migration"] == "m" and "runbooks" not in alert["labels"]
        assert alert["annotations"]["runbook_url"] == "https://runbooks.example.net/AuthorityDown.md"
        monitoring.web.metrics = 'shadow_proxy_server_silent_seconds{shard="cache-0",server="source"} 0\n'
        assert monitoring.web.wait("AuthorityDown", "resolved", 60)[0] == "on-call"

    @pytest.mark.parametrize("severity,wanted", [("critical", "on-call"), ("warning", "team")])
    def test_a_test_alert_arrives(self, monitoring, severity, wanted):
        monitoring.web.posted.clear()
        code, changed, told = monitoring.play("test-alert.yml", test_alert_severity=severity, test_alert_labels={"shard": "cache-0"})
        assert code == 0 and changed == [], told
        receiver, alert = monitoring.web.wait("TestAlert", "firing", 1)
        assert receiver == wanted and alert["labels"]["severity"] == severity and alert["labels"]["shard"] == "cache-0"
        assert re.search(rf"{alert['labels']['instance']} was accepted after [0-9.]+ s: receiver {wanted}, by webhook[.]", told), told
        monitoring.web.wait("TestAlert", "resolved", 10)

    def test_check_mode_sends_none(self, monitoring):
        monitoring.web.posted.clear()
        code, changed, told = monitoring.play("test-alert.yml", "--check")
        assert code == 0 and changed == [] and "Nothing was sent" in told, told
        assert monitoring.web.posted == []

    def test_a_receiver_that_fails_is_named(self, monitoring):
        monitoring.web.status = 500
        code, _, told = monitoring.play("test-alert.yml")
        monitoring.web.status = 200
        assert code != 0 and re.search(r"notifications of on-call failed by webhook \(\d+\)", told), told

    def test_a_silence_is_named(self, monitoring):
        url = f"--alertmanager.url=http://127.0.0.1:{monitoring.ports['alertmanager']}"
        silence = subprocess.run(["amtool", url, "silence", "add", "alertname=TestAlert", "--comment=x", "--author=x"], capture_output=True, text=True, check=True).stdout.strip()
        code, _, told = monitoring.play("test-alert.yml")
        subprocess.run(["amtool", url, "silence", "expire", silence], check=True)
        assert code != 0 and f"keeps it quiet ({silence})" in told, told

    @pytest.mark.parametrize(
        "wrong,named",
        [
            ({"alertmanager_routes": [{"receiver": "nobody-knows"}]}, 'undefined receiver "nobody-knows" used in route'),
            ({"alertmanager_route": {"group_wait": "5 minutes"}}, 'not a valid duration string: "5 minutes"'),
            ({"alertmanager_receivers": [{"name": "on-call", "slack_config": []}]}, "field slack_config not found"),
            ({"alertmanager_receivers": [{"name": "on-call", "webhook_configs": [{"url": f"http://h:x/{SECRET}"}]}]}, 'parse "<alertmanager_receivers[0].webhook_configs[0].url>": invalid port'),
            ({"alertmanager_global": {"smtp_smarthost": "no-port-here"}}, "<alertmanager_global.smtp_smarthost>"),
        ],
    )
    def test_a_wrong_value_is_named_and_changes_nothing(self, monitoring, wrong, named):
        before = monitoring.host.run("cat", "/etc/prometheus/alertmanager.yml")
        (monitoring.units / "calls").write_text("")
        code, changed, told = monitoring.play("alertmanager.json", **{**monitoring.receivers(), **wrong})
        assert code != 0 and changed == [] and "is as it was" in told and named in told, told
        assert SECRET not in told
        assert monitoring.host.run("cat", "/etc/prometheus/alertmanager.yml") == before
        assert "reload" not in (monitoring.units / "calls").read_text()

    def test_another_alertmanager_takes_its_place(self, monitoring):
        port, directory = free_port(), monitoring.directory
        webhooks = monitoring.receivers()["alertmanager_receivers"][0]["webhook_configs"]
        config = {"route": {"receiver": "theirs", "group_wait": "1s", "group_interval": "2s"}, "receivers": [{"name": "theirs", "webhook_configs": webhooks}]}
        (directory / "theirs.yml").write_text(json.dumps(config))
        theirs = subprocess.Popen(["prometheus-alertmanager", f"--config.file={directory / 'theirs.yml'}", f"--storage.path={directory / 'theirs'}", f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port, "prometheus-alertmanager")
            given = {"alertmanagers": [{"targets": [f"127.0.0.1:{port}"]}]}
            changed, told = monitoring.configure(**given)
            assert changed == ["Write who is read", "Stop it, for another Alertmanager is used"] and "NOBODY IS NOTIFIED" not in told
            assert monitoring.configure(**given)[0] == []
            for _ in range(100):
                known = [each["url"] for each in monitoring.ask("prometheus", "/api/v1/alertmanagers")["data"]["activeAlertmanagers"]]
                if known == [f"http://127.0.0.1:{port}/api/v2/alerts"]:
                    break
                time.sleep(0.1)
            code, _, told = monitoring.play("test-alert.yml", **given)
            assert code == 0 and "receiver theirs" in told, f"{known} {told}"
        finally:
            theirs.terminate()
            theirs.wait()
        changed, _ = monitoring.configure(**monitoring.receivers())
        assert changed == ["Write who is read", "Start Alertmanager, and at every boot"]

    def test_no_alertmanager_at_all_is_named_by_the_test_alert(self, monitoring):
        monitoring.configure(alertmanager_enabled=False)
        for _ in range(100):
            if monitoring.ask("prometheus", "/api/v1/alertmanagers")["data"]["activeAlertmanagers"] == []:
                break
            time.sleep(0.1)
        code, _, told = monitoring.play("test-alert.yml")
        assert code != 0 and "Prometheus sends alerts to no Alertmanager" in told
