"""A host of its own for a role, without booting one: this machine with another /etc and /var/lib, which are gone with it."""

import os
import subprocess

#: /etc and /usr/local/lib of this machine with what is written on top of them in memory, and an empty /var/lib; gone when the last process in it ends.
MOUNT = """
set -e
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$0/upper,workdir=$0/work" /etc
mkdir "$0/lib" "$0/lib-work"
mount -t overlay overlay -o "lowerdir=/usr/local/lib,upperdir=$0/lib,workdir=$0/lib-work" /usr/local/lib
mount -t tmpfs tmpfs /var/lib
useradd --system --shell /usr/sbin/nologin --home-dir /var/lib/keydb keydb
install -d -o root -g keydb -m 0750 /etc/keydb
install -d -o keydb -g keydb -m 0750 /var/lib/keydb
echo ready
exec cat
"""
LACKS = "no root, or no mounts of its own for it, here: a KeyDB node as the role makes it was not tried"


class Host:
    """A mount namespace. Programs in it have this machine's network; address is one of loopback."""

    def __init__(self, directory, address):
        directory.mkdir()
        self.address, self.servers = address, []
        # Its input is a pipe of ours: it ends with us, however we do.
        self._keeper = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self._keeper.stdout.readline() != "ready\n":
            raise OSError(self._keeper.communicate()[1])

    def inside(self, *command):
        """The command, to be run in it."""
        return ["nsenter", f"--mount=/proc/{self._keeper.pid}/ns/mnt", *map(str, command)]

    def run(self, *command, **more):
        """@returns what it said. @raises AssertionError with what it said where it fails"""
        done = subprocess.run(self.inside(*command), capture_output=True, text=True, env={**os.environ, **more})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *command, **more):
        self.servers.append(subprocess.Popen(self.inside(*command), env={**os.environ, **more}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.servers[-1]

    def end(self):
        for server in self.servers:
            server.terminate()
            server.wait()
        self._keeper.communicate()
