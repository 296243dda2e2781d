#!/usr/bin/python
"""Has a server write a snapshot, and fails where none comes: what a replica of it needs, and a restart."""

DOCUMENTATION = """
module: keydb_save
short_description: Has a Redis or KeyDB server write a snapshot, and sees that it did
description:
  - Sends BGSAVE, and waits until the moment of the last snapshot has moved on.
  - KeyDB calls a snapshot whose process has died cancelled, and rdb_last_bgsave_status stays ok; so only LASTSAVE tells.
  - In check mode nothing is sent.
extends_documentation_fragment: login
options:
  timeout: {type: int, default: 3600, description: Seconds to wait.}
"""

RETURN = """
seconds: {type: float, returned: always, description: How long it took.}
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.resp import ServerError, connect, login_options


def wait_for(seen, deadline):
    """What `seen` returns, as soon as it is true; what it returned last where time is up."""
    while not (found := seen()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def save(server, deadline):
    """What is wrong, or None once a snapshot of what the server holds now is on its disk."""
    if not wait_for(lambda: server.info().get("rdb_bgsave_in_progress") == "0", deadline):
        return "another snapshot is being written"
    before = server.call("LASTSAVE")
    # It is told in whole seconds.
    wait_for(lambda: int(server.call("TIME")[0]) > before, deadline)
    server.call("BGSAVE")
    if not wait_for(lambda: server.info().get("rdb_bgsave_in_progress") == "0", deadline):
        return "it is still being written"
    return None if server.call("LASTSAVE") > before else "the process that writes it has failed; the server's log says why"


def main():
    """One snapshot."""
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(login_options(), timeout={"type": "int", "default": 3600}))
    if module.check_mode:
        module.exit_json(changed=False, seconds=0.0)
    host, port, timeout = (module.params[name] for name in ("host", "port", "timeout"))
    began = time.monotonic()
    try:
        with connect(module.params) as server:
            problem = save(server, began + timeout)
    except (OSError, ServerError) as error:
        problem = str(error)
    seconds = time.monotonic() - began
    if problem:
        module.fail_json(msg="%s:%d has written no snapshot in %d s: %s. No replica can take its data over, and a restart loses what came since the last one: runbooks/KeydbCannotSave.md" % (host, port, seconds, problem))
    module.exit_json(changed=False, seconds=round(seconds, 1))


if __name__ == "__main__":
    main()
