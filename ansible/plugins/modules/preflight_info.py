#!/usr/bin/python
"""Says what keeps the playbooks from working on this host. Changes nothing."""

DOCUMENTATION = """
module: preflight_info
short_description: Says what keeps the playbooks from working on a host
description: Compares the host with what is supported, and looks whether the programs can be installed. Changes nothing.
options:
  os_release: {type: str, default: /etc/os-release, description: File that names the system.}
  systems:
    type: list
    elements: dict
    default: []
    description: Supported systems, each with C(name), C(id) and C(version). Empty checks no system, architecture or Python.
  architectures: {type: list, elements: str, default: [], description: Supported architectures, in Debian's words.}
  node:
    type: dict
    description: Where Node comes from.
    options:
      method: {type: str, required: true, description: C(repository), C(package), C(binary) or C(present).}
      package: {type: str, default: nodejs, description: The package, with method C(package).}
      url: {type: str, default: "", description: URL of the repository.}
      suite: {type: str, default: "", description: Suite of the repository.}
      version: {type: str, default: "", description: Version of the package in the repository; C(*) stands for anything.}
      checksum: {type: str, default: "", description: What the binary must have, or that of the repository's key.}
      program: {type: dict, default: {}, description: What program_info says of the binary.}
  keydb:
    type: dict
    description: Where KeyDB comes from.
    options:
      method: {type: str, required: true, description: C(repository), C(package), C(binary) or C(container).}
      url: {type: str, default: "", description: URL of the repository or the package.}
      suite: {type: str, default: "", description: Suite of the repository.}
      version: {type: str, default: "", description: Version of the package; C(*) stands for anything.}
      checksum: {type: str, default: "", description: What the package or the binary must have, or that of the repository's key.}
      engine: {type: str, default: podman, description: Container engine.}
      image: {type: str, default: "", description: Container image.}
      program: {type: dict, default: {}, description: What program_info says of the binary.}
"""

RETURN = """
problems: {type: list, returned: always, description: 'What is wrong: each a sentence with what was found, what is allowed, and what to do next.'}
"""

import fnmatch
import gzip
import os
import re
import shutil
import sys
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

NODE = (20, 19)
PYTHON = (3, 9)
DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
CHECKSUM = re.compile("sha256:[0-9a-f]{64}$")
NODE_NEXT = (
    "Set migration_kit_node_method: repository, or binary with migration_kit_node_src and migration_kit_node_checksum (Node 24 for this architecture), "
    "or give the host a repository with Node 24."
)

# Of a repository: whose it is, its package, how names of its variables begin, the variable of the version, and what else can be set.
KEYDB_REPOSITORY = ("KeyDB", "keydb-server", "keydb", "keydb_version", "Or set keydb_install_method to package, binary or container.")
NODE_REPOSITORY = ("Node", "nodejs", "migration_kit_node", "migration_kit_node_major", "Or set migration_kit_node_method to package, binary or present.")


class Host:
    """This host, read."""

    def __init__(self, module):
        self.module = module
        self.system = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', self.read(module.params["os_release"]), re.M))
        machine = self.run("uname", "-m").strip()
        self.architecture = DEBIAN_NAMES.get(machine, machine)

    @staticmethod
    def read(path):
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as file:
            return file.read()

    def run(self, *command):
        """What it prints; empty where it fails or does not exist."""
        if shutil.which(command[0]) is None:
            return ""
        code, output, _ = self.module.run_command(list(command))
        return output if code == 0 else ""

    def policy(self, package):
        """What apt knows of the package. A new host has no lists yet: then they are read into a directory that is removed again."""
        # Without a cache of its own: that would be a file that the preflight leaves.
        known = self.run("apt-cache", "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", "policy", package)
        if "Candidate:" in known and "Candidate: (none)" not in known:
            return known
        with tempfile.TemporaryDirectory() as directory:
            # apt downloads as a user of its own.
            os.chmod(directory, 0o755)
            os.makedirs(directory + "/lists/partial")
            # A hook would note that the host's own lists are new, and apt would not read them when it installs.
            with open(directory + "/apt.conf", "w", encoding="utf-8") as file:
                file.writelines(f"#clear APT::Update::{hook};\n" for hook in ["Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"])
            options = ["-o", f"Dir::State::lists={directory}/lists", "-o", f"Dir::Cache={directory}", "-o", "APT::Sandbox::User=root", "-c", directory + "/apt.conf"]
            self.run("apt-get", *options, "update", "-qq")
            return self.run("apt-cache", *options, "policy", package)

    def installed(self, package):
        return self.run("dpkg-query", "--show", "--showformat=${db:Status-Abbrev}${Version}", package).removeprefix("ii ").removeprefix("hi ").strip()


def check_system(host, systems, architectures):
    allowed = ", ".join(system["name"] for system in systems)
    found = host.system.get("PRETTY_NAME", "no /etc/os-release")
    if not any(host.system.get("ID") == system["id"] and host.system.get("VERSION_ID") == system["version"] for system in systems):
        yield f"the system is {found}; allowed: {allowed}. Use a host with one of these."
    if host.architecture not in architectures:
        yield f"the architecture is {host.architecture}; allowed: {', '.join(architectures)}. Use a host with one of these."
    if sys.version_info[:2] < PYTHON:
        yield f"Python is {sys.version.split()[0]}; allowed: {shown(PYTHON)} or newer. Set ansible_python_interpreter to one of these."


def shown(version):
    return ".".join(map(str, version))


def major_minor(text):
    """(20, 19) of 20.19.1, v20.19.1 or 1:20.19.1-1; None where there is no version."""
    found = re.match(r"(?:\d+:|v)?(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else None


def candidate(policy, wanted):
    """The version that apt would leave installed: the one that is, else the candidate; with `package=version` that one."""
    if wanted:
        return next((version for version in re.findall(r"^(?: {5}| \*\*\* )(\S+) \d+$", policy, re.M) if fnmatch.fnmatch(version, wanted)), "")
    for field in ["Installed", "Candidate"]:
        found = re.search(rf"^  {field}: ([^(\s]\S*)$", policy, re.M)
        if found:
            return found.group(1)
    return ""


def check_program(host, program, checksum, variable):
    """A binary of the controller. variable is how names of its variables begin."""
    if not program.get("exists"):
        yield f"{variable}_src is no file on the controller. Write the path of the program for {host.architecture}."
        return
    if program["checksum"] != checksum:
        yield f"{variable}_src has {program['checksum']}; allowed: {checksum or 'nothing'}, which is {variable}_checksum. Check where the file comes from, then set {variable}_checksum."
    if program["architecture"] != host.architecture:
        yield f"{variable}_src is a program for {program['architecture']}; allowed: {host.architecture}, the host's. Set {variable}_src for this host to a program of its architecture."


def check_node(host, node):
    if node["method"] == "repository":
        yield from check_repository(host, node, NODE_REPOSITORY)
        return
    if node["method"] == "binary":
        yield from check_program(host, node["program"], node["checksum"], "migration_kit_node")
        # A build that does not name its version is tried on the host.
        found, source = node["program"].get("node") or shown(NODE), "migration_kit_node_src"
    elif node["method"] == "present":
        found, source = host.run("node", "--version").strip(), "the host (migration_kit_node_method: present)"
    else:
        name, _, wanted = node["package"].partition("=")
        found, source = candidate(host.policy(name), wanted), f"package {node['package']}"
    version = major_minor(found)
    if version is None or version < NODE:
        yield f"Node from {source} is {found or 'not available'}; allowed: {shown(NODE)} or newer. {NODE_NEXT}"


def fetched(url):
    """@returns the content, and why there is none"""
    try:
        with open_url(url, timeout=30) as response:
            return response.read(), ""
    except Exception as error:  # An HTTP status, a name that is not resolved, a refused connection, a certificate: each says what it is.
        return b"", str(error)


def versions_in(index, package):
    for paragraph in index.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version): (\S+)$", paragraph, re.M))
        if fields.get("Package") == package and "Version" in fields:
            yield fields["Version"]


def check_repository(host, wanted, words):
    name, package, prefix, version, others = words
    if fnmatch.fnmatch(host.installed(package), wanted["version"]):
        return
    if not CHECKSUM.match(wanted["checksum"]):
        yield f"{prefix}_repository_key_checksum is {wanted['checksum'] or 'not set'}; allowed: sha256:… of the vendor's key. Set it. {others}"
    suite = wanted["suite"]
    index = f"{wanted['url']}/dists/{suite}/main/binary-{host.architecture}/Packages"
    content, _ = fetched(index + ".gz")
    content, why = (gzip.decompress(content), "") if content else fetched(index)
    if why:
        yield f"{name}'s repository has no packages for {suite} on {host.architecture} that the host can read ({index}: {why}). Set {prefix}_repository_suite to a suite that it has. {others}"
        return
    found = sorted(set(versions_in(content.decode(), package)))
    if not any(fnmatch.fnmatch(each, wanted["version"]) for each in found):
        yield f"{package} in {name}'s repository for {suite} on {host.architecture} is {', '.join(found) or 'missing'}; allowed: {wanted['version']}. Set {version}. {others}"


def check_package(host, keydb):
    if not CHECKSUM.match(keydb["checksum"]):
        yield f"keydb_package_checksum is {keydb['checksum'] or 'not set'}; allowed: sha256:… of the file. Set it."
    named = re.search(r"_(\w+)\.deb$", keydb["url"])
    if named and named.group(1) not in [host.architecture, "all"]:
        yield f"keydb_package_url is a package for {named.group(1)}; allowed: {host.architecture}, the host's. Set keydb_package_url for this host."
    try:
        open_url(keydb["url"], method="HEAD", timeout=30).close()
    except Exception as error:  # As above.
        yield f"the host cannot read keydb_package_url ({keydb['url'] or 'not set'}: {error}). Set it to a URL that the host can reach."


def check_container(host, keydb):
    if shutil.which(keydb["engine"]) is None:
        yield f"the container engine {keydb['engine']} is not installed. Install it, or set keydb_container_engine."
    if not re.search("@sha256:[0-9a-f]{64}$", keydb["image"]):
        yield f"keydb_container_image is {keydb['image'] or 'not set'}; allowed: an image with its digest (…@sha256:…). Set it."


def check_keydb(host, keydb):
    if keydb["method"] == "binary":
        return check_program(host, keydb["program"], keydb["checksum"], "keydb_binary")
    if keydb["method"] == "repository":
        return check_repository(host, keydb, KEYDB_REPOSITORY)
    return {"package": check_package, "container": check_container}[keydb["method"]](host, keydb)


def main():
    text = {"type": "str", "default": ""}
    method = {"type": "str", "required": True}
    program = {"type": "dict", "default": {}}
    module = AnsibleModule(
        {
            "os_release": {"type": "str", "default": "/etc/os-release"},
            "systems": {"type": "list", "elements": "dict", "default": []},
            "architectures": {"type": "list", "elements": "str", "default": []},
            "node": {"type": "dict", "options": {"method": method, "package": {"type": "str", "default": "nodejs"}, "url": text, "suite": text, "version": text, "checksum": text, "program": program}},
            "keydb": {
                "type": "dict",
                "options": {"method": method, "url": text, "suite": text, "version": text, "checksum": text, "engine": {"type": "str", "default": "podman"}, "image": text, "program": program},
            },
        },
        supports_check_mode=True,
    )
    given, host = module.params, Host(module)
    problems = list(check_system(host, given["systems"], given["architectures"])) if given["systems"] else []
    problems += check_node(host, given["node"]) if given["node"] else []
    problems += check_keydb(host, given["keydb"]) if given["keydb"] else []
    module.exit_json(changed=False, problems=problems)


if __name__ == "__main__":
    main()
