#!/usr/bin/python
"""Reads what a Redis or KeyDB server says of itself, and waits for it where asked. Changes nothing."""

DOCUMENTATION = """
module: keydb_info
short_description: Reads INFO and parameters of a Redis or KeyDB server
description: Reads what a running server says of itself, and waits for a condition where asked. Changes nothing.
extends_documentation_fragment: login
options:
  settings: {type: list, elements: str, default: [], description: Parameters to read with CONFIG GET; what it does not tell is left out.}
  until:
    type: str
    default: answers
    choices: [answers, synced, primary, replica]
    description: What to wait for. C(synced) is a primary that has loaded its data, or a replica whose link is up.
  timeout: {type: int, default: 0, description: Seconds to wait; 0 asks once.}
  optional: {type: bool, default: false, description: Whether a server that cannot be reached is an answer (reachable is false) and no failure.}
"""

RETURN = """
reachable: {type: bool, returned: always, description: Whether the server answered.}
role: {type: str, returned: reachable, description: C(primary), C(replica) or C(active).}
synced: {type: bool, returned: reachable, description: Whether its data is loaded and its links are up.}
info: {type: dict, returned: reachable, description: Every field of INFO.}
settings: {type: dict, returned: reachable, description: The parameters that were asked for and that CONFIG GET tells.}
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.resp import ServerError, connect, login_options

ROLES = {"master": "primary", "slave": "replica", "active-replica": "active"}


def look(params):
    """What the server says now."""
    with connect(params) as server:
        info = server.info()
        settings = {name: told(server, name) for name in params["settings"]}
    links = [value for name, value in info.items() if name.startswith("master") and name.endswith("link_status")]
    synced = info.get("loading") == "0" and info.get("master_sync_in_progress", "0") == "0" and all(link == "up" for link in links)
    return {
        "reachable": True,
        "role": ROLES.get(info.get("role"), info.get("role")),
        "synced": synced,
        "info": info,
        "settings": {name: value for name, value in settings.items() if value is not None},
    }


def told(server, name):
    """A parameter, or None where CONFIG is refused: managed services have none of it, and users may not have it."""
    try:
        return server.setting(name)
    except ServerError:
        return None


def holds(seen, until):
    """Whether what was waited for is so."""
    if until == "answers":
        return True
    return seen["synced"] if until == "synced" else seen["role"] == until and seen["synced"]


def main():
    """Asks until it holds, or time is up."""
    module = AnsibleModule(
        supports_check_mode=True,
        argument_spec=dict(
            login_options(),
            settings={"type": "list", "elements": "str", "default": []},
            until={"type": "str", "default": "answers", "choices": ["answers", "synced", "primary", "replica"]},
            timeout={"type": "int", "default": 0},
            optional={"type": "bool", "default": False},
        ),
    )
    params = module.params
    deadline = time.monotonic() + params["timeout"]
    while True:
        try:
            seen, problem = look(params), None
            if holds(seen, params["until"]):
                module.exit_json(changed=False, **seen)
            problem = "it is %s, %s" % (seen["role"], "synced" if seen["synced"] else "not synced")
        except (OSError, ServerError) as error:
            problem = str(error)
        if time.monotonic() >= deadline:
            break
        time.sleep(0.25)
    if params["optional"]:
        module.exit_json(changed=False, reachable=False, problem=problem)
    module.fail_json(msg="%s:%d is not as wanted (%s) after %d s: %s" % (params["host"], params["port"], params["until"], params["timeout"], problem))


if __name__ == "__main__":
    main()
