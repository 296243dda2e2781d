"""The smallest client that speaks to Redis and KeyDB: Python's own library only, for hosts have nothing else."""

import socket
import ssl


class ServerError(Exception):
    """An error that the server answered, such as `NOAUTH Authentication required.`"""


class Server:
    """One connection. Raises OSError where it cannot be made, ServerError where the login is refused."""

    def __init__(self, host, port, user=None, password=None, tls_ca=None, tls=False, timeout=5.0):
        self._socket = socket.create_connection((host, port), timeout)
        if tls or tls_ca:
            context = ssl.create_default_context(cafile=tls_ca)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._file = self._socket.makefile("rb")
        if password:
            self.call("AUTH", *([user] if user else []), password)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
        self._socket.close()

    def call(self, *words):
        """The reply as str, int, None or a list of these."""
        request = b"*%d\r\n" % len(words)
        for word in words:
            data = str(word).encode()
            request += b"$%d\r\n%s\r\n" % (len(data), data)
        self._socket.sendall(request)
        return self._read()

    def info(self):
        """INFO of every section, as a dict of strings."""
        lines = self.call("INFO").split("\r\n")
        return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))

    def setting(self, name):
        """A parameter's live value as str; None where CONFIG GET does not tell it, as with KeyDB's server-threads."""
        found = self.call("CONFIG", "GET", name)
        return found[1] if found else None

    def _read(self):
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise OSError("the server closed the connection")
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"+":
            return rest
        if kind == b"-":
            raise ServerError(rest)
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == "-1" else self._file.read(int(rest) + 2)[:-2].decode(errors="replace")
        return None if rest == "-1" else [self._item() for _ in range(int(rest))]

    def _item(self):
        """An element of an array: an error in it is a value, as in the reply of EXEC."""
        try:
            return self._read()
        except ServerError as error:
            return str(error)


def login_options():
    """What every module here takes to reach a server."""
    return {
        "host": {"type": "str", "default": "127.0.0.1"},
        "port": {"type": "int", "required": True},
        "user": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "tls": {"type": "bool", "default": False},
        "tls_ca": {"type": "path"},
    }


def connect(params, timeout=5.0):
    """A connection as the module's parameters say."""
    return Server(params["host"], params["port"], params["user"], params["password"], params["tls_ca"], params["tls"], timeout)
