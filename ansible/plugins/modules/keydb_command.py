#!/usr/bin/python
"""Sends commands to a server, in order, until one is refused."""

DOCUMENTATION = """
module: keydb_command
short_description: Sends commands to a Redis or KeyDB
description: Sends commands in order and stops at the first that the server refuses. In check mode nothing is sent.
extends_documentation_fragment: login
options:
  commands: {type: list, elements: list, required: true, description: Each a list of words.}
"""

RETURN = """
replies: {type: list, returned: always, description: The reply of each command.}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.resp import ServerError, connect, login_options


def main():
    """Sends them."""
    spec = dict(login_options(), commands={"type": "list", "elements": "list", "required": True})
    module = AnsibleModule(supports_check_mode=True, argument_spec=spec)
    if module.check_mode:
        module.exit_json(changed=True, replies=[])
    replies = []
    try:
        with connect(module.params) as server:
            for command in module.params["commands"]:
                replies.append(server.call(*command))
    except (OSError, ServerError) as error:
        module.fail_json(msg="%s was refused: %s" % (" ".join(map(str, module.params["commands"][len(replies)][:2])) if len(replies) < len(module.params["commands"]) else "a command", error), replies=replies)
    module.exit_json(changed=True, replies=replies)


if __name__ == "__main__":
    main()
