#!/usr/bin/python
"""Brings a running server to settings without a restart: reads each before it is written."""

DOCUMENTATION = """
module: keydb_settings
short_description: Sets parameters of a running Redis or KeyDB where they differ
description: >-
  Compares each parameter with CONFIG GET and sets only what differs. What the server does not let itself be set, or does not tell, is
  returned in C(restart): it holds after a restart.
extends_documentation_fragment: login
options:
  settings: {type: dict, required: true, description: Parameters with the values that they have to have.}
"""

RETURN = """
set: {type: list, returned: always, description: Names of the parameters that were set.}
restart: {type: list, returned: always, description: Names of those that need a restart.}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.resp import ServerError, connect, login_options

UNITS = {"kb": 1024, "mb": 1024**2, "gb": 1024**3, "k": 1000, "m": 1000**2, "g": 1000**3, "b": 1}


def plain(value):
    """One form for one value: 64mb is 67108864, and letters' case and quotes are nothing."""
    words = str(value).strip().strip('"').lower().split()
    return " ".join(_number(word) for word in words)


def _number(word):
    for unit, factor in UNITS.items():
        digits = word[: -len(unit)]
        if word.endswith(unit) and digits.isdigit():
            return str(int(digits) * factor)
    return word


def same(live, wanted):
    """Whether the live value says what is wanted; a value of several groups, such as client-output-buffer-limit, may name more than is wanted."""
    live, wanted = plain(live), plain(wanted)
    return live == wanted or (" " in wanted and wanted in live)


def main():
    """Sets what differs."""
    module = AnsibleModule(supports_check_mode=True, argument_spec=dict(login_options(), settings={"type": "dict", "required": True}))
    done, restart = [], []
    try:
        with connect(module.params) as server:
            for name, value in module.params["settings"].items():
                live = server.setting(name)
                if live is None:
                    restart.append(name)
                elif not same(live, value):
                    try:
                        if not module.check_mode:
                            server.call("CONFIG", "SET", name, value)
                        done.append(name)
                    except ServerError:
                        restart.append(name)
    except (OSError, ServerError) as error:
        module.fail_json(msg="cannot ask %s:%d: %s" % (module.params["host"], module.params["port"], error))
    module.exit_json(changed=bool(done), set=done, restart=restart)


if __name__ == "__main__":
    main()
