#!/usr/bin/python
"""Sends an alert on the way of Prometheus' own, and sees that a receiver accepts it."""

DOCUMENTATION = """
module: send_test_alert
short_description: Sends a test alert to the Alertmanagers of a Prometheus, and waits until a receiver has accepted it
description:
  - Asks Prometheus which Alertmanagers it sends to, sends all of them the alert, and ends it again.
  - A receiver has accepted it where Alertmanager counts a request that did not fail. What a mail server or a chat does with it later is not known.
  - Fails where Prometheus knows no Alertmanager, no receiver sends anything, the alert is kept quiet, or no receiver accepts it in time.
  - In check mode nothing is sent.
options:
  prometheus: {type: str, required: true, description: URL of Prometheus.}
  labels: {type: dict, required: true, description: Labels of the alert; instance has to be new each time.}
  annotations: {type: dict, default: {}, description: Annotations of the alert.}
  timeout: {type: int, default: 120, description: Seconds to wait; the group_wait of the route is part of it.}
"""

RETURN = """
alertmanagers: {type: list, returned: always, description: URLs of the Alertmanagers that Prometheus sends to.}
receivers: {type: list, returned: success, description: Names of the receivers that the routes choose for the alert.}
accepted: {type: dict, returned: success, description: "By kind of integration, such as webhook: how many notifications were accepted."}
seconds: {type: float, returned: success, description: How long it took.}
"""

import json
import re
import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from ansible.module_utils.basic import AnsibleModule

SECONDS = 10
#: In case nobody ends it.
LIVES = timedelta(minutes=10)
#: For the other receivers of the same alert, once one has accepted it.
SETTLES = 3
SEEN = 15
COUNTED = re.compile(r'^alertmanager_notification_requests(_failed)?_total\{.*?integration="([^"]+)".*\} (\S+)$', re.M)
LOG = "journalctl -u prometheus-alertmanager says why"
#: As Prometheus does, it asks no proxy.
OPENER = build_opener(ProxyHandler({}))


class Problem(Exception):
    """Why nobody would be notified, and what to do."""


def read(url, body=None):
    """@returns what is at the URL, as text; with a body, it is sent there as JSON"""
    data = None if body is None else json.dumps(body).encode()
    try:
        with OPENER.open(Request(url, data, {"Content-Type": "application/json"}), timeout=SECONDS) as answer:
            return answer.read().decode()
    except HTTPError as error:
        raise Problem("%s answers %d: %s" % (url, error.code, error.read(300).decode("utf-8", "replace").strip()))
    except OSError as error:
        raise Problem("%s does not answer: %s. It has to run, and its port has to be open from here" % (url, error))


def within(seconds, look):
    """What `look` returns, as soon as it is true; what it returned last where time is up."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


class Alertmanagers:
    """Those that a Prometheus sends to: in a cluster, any of them may be the one that notifies."""

    def __init__(self, prometheus):
        # Just started, it has not read yet where they are.
        known = within(SEEN, lambda: json.loads(read(prometheus + "/api/v1/alertmanagers"))["data"]["activeAlertmanagers"])
        self.urls = [re.sub(r"/api/v[12]/alerts$", "", each["url"]) for each in known]
        if not self.urls:
            raise Problem("Prometheus sends alerts to no Alertmanager: set alertmanagers, or leave alertmanager_enabled on, and run playbooks/observability.yml")
        self._before = None

    def have_receivers(self):
        """By their configuration, in which receivers are said in YAML."""
        return any("_configs:" in json.loads(read(url + "/api/v2/status"))["config"]["original"] for url in self.urls)

    def requests(self):
        """By kind of integration: notifications that were accepted, and those that failed, since the first call."""
        counts = [Counter(), Counter()]
        for url in self.urls:
            for failed, integration, count in COUNTED.findall(read(url + "/metrics")):
                counts[bool(failed)][integration] += int(float(count))
        self._before = self._before or counts
        made, failed = (Counter({name: now[name] - was[name] for name in now if now[name] > was[name]}) for now, was in zip(counts, self._before))
        return {name: made[name] - failed[name] for name in made if made[name] > failed[name]}, dict(failed)

    def send(self, alert, ends):
        for url in self.urls:
            read(url + "/api/v2/alerts", [{**alert, "endsAt": ends.isoformat()}])

    def alerts(self, query=""):
        return [alert for url in self.urls for alert in json.loads(read(url + "/api/v2/alerts" + query))]


def try_out(alertmanagers, alert, timeout):
    """@returns receivers, and what was accepted, by integration. @raises Problem"""
    if not alertmanagers.have_receivers():
        raise Problem("no receiver of %s sends anything: set alertmanager_receivers (ansible/README.md, \"Alerts\"), and run playbooks/observability.yml" % ", ".join(alertmanagers.urls))
    alertmanagers.requests()
    alertmanagers.send(alert, datetime.now(timezone.utc) + LIVES)
    try:
        query = "?filter=" + quote('instance="%s"' % alert["labels"]["instance"])
        seen = within(SEEN, lambda: alertmanagers.alerts(query))
        if not seen:
            raise Problem("%s took the alert and does not show it: %s" % (", ".join(alertmanagers.urls), LOG))
        quiet = [each["status"] for each in seen if each["status"]["state"] == "suppressed"]
        if quiet:
            by = [identifier for status in quiet for identifier in status["silencedBy"] + status["inhibitedBy"]]
            raise Problem("a silence or another alert keeps it quiet (%s): remove it, or give other test_alert_labels" % ", ".join(sorted(set(by))))
        receivers = sorted({receiver["name"] for each in seen for receiver in each["receivers"]})
        within(timeout, lambda: any(alertmanagers.requests()))
        time.sleep(SETTLES)
        accepted, failed = alertmanagers.requests()
    finally:
        alertmanagers.send(alert, datetime.now(timezone.utc))
    if failed:
        raise Problem("notifications of %s failed by %s: %s" % (", ".join(receivers), ", ".join("%s (%d)" % each for each in sorted(failed.items())), LOG))
    if not accepted:
        raise Problem("receiver %s has accepted nothing in %d s: it has no *_configs, or its route waits longer (group_wait, or group_interval if it does not group by instance); then give test_alert_timeout" % (", ".join(receivers), timeout))
    return receivers, accepted


def main():
    """One test alert."""
    spec = {
        "prometheus": {"type": "str", "required": True},
        "labels": {"type": "dict", "required": True},
        "annotations": {"type": "dict", "default": {}},
        "timeout": {"type": "int", "default": 120},
    }
    module = AnsibleModule(supports_check_mode=True, argument_spec=spec)
    began = time.monotonic()
    try:
        alertmanagers = Alertmanagers(module.params["prometheus"].rstrip("/"))
        if module.check_mode:
            module.exit_json(changed=False, alertmanagers=alertmanagers.urls, receivers=[], accepted={}, seconds=0.0)
        others = len(alertmanagers.alerts())
        alert = {name: {key: str(value) for key, value in module.params[name].items()} for name in ("labels", "annotations")}
        receivers, accepted = try_out(alertmanagers, alert, module.params["timeout"])
    except Problem as problem:
        module.fail_json(msg="Nobody may be notified of alerts: %s." % problem)
    except (ValueError, KeyError) as error:
        module.fail_json(msg="What answers at %s, or an Alertmanager that it names, is another program or version: %r." % (module.params["prometheus"], error))
    if others:
        module.warn("%d other alerts are active: what was accepted may be a notification of theirs. Look at the receiver for %s" % (others, alert["labels"]["instance"]))
    module.exit_json(changed=False, alertmanagers=alertmanagers.urls, receivers=receivers, accepted=accepted, seconds=round(time.monotonic() - began, 1))


if __name__ == "__main__":
    main()
