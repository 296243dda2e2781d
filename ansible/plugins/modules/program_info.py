#!/usr/bin/python
"""Looks at a program's file: is it there, which file is it, for which architecture. Does not run it. Changes nothing."""

DOCUMENTATION = """
module: program_info
short_description: Looks at a program's file
description: Says whether the file of a program exists, its checksum, its architecture, and the version of Node where it is Node. Does not run it.
options:
  path: {type: str, required: true, description: Path of the program; empty is a file that does not exist.}
"""

RETURN = """
exists: {type: bool, returned: always, description: Whether there is such a file.}
checksum: {type: str, returned: exists, description: C(sha256:…) of the file.}
architecture: {type: str, returned: exists, description: C(amd64), C(arm64), or C(unknown).}
node: {type: str, returned: exists, description: Version of Node that the file names, or empty.}
"""

import hashlib
import os
import re

from ansible.module_utils.basic import AnsibleModule

# e_machine of the ELF header.
MACHINES = {62: "amd64", 183: "arm64"}


def look(path):
    if not os.path.isfile(path):
        return {"exists": False}
    with open(path, "rb") as file:
        content = file.read()
    elf = content[:6] == b"\x7fELF\x02\x01"
    machine = MACHINES.get(int.from_bytes(content[18:20], "little"), "unknown") if elf else "unknown"
    # process.release.headersUrl, which is in every build of Node.
    node = re.search(rb"nodejs\.org/download/release/v(\d+\.\d+\.\d+)", content)
    return {"exists": True, "checksum": "sha256:" + hashlib.sha256(content).hexdigest(), "architecture": machine, "node": node.group(1).decode() if node else ""}


def main():
    module = AnsibleModule({"path": {"type": "str", "required": True}}, supports_check_mode=True)
    module.exit_json(changed=False, **look(module.params["path"]))


if __name__ == "__main__":
    main()
