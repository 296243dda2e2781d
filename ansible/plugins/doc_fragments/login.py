"""Options that every module which speaks to a server has: those of `login_options` in module_utils/resp.py."""


class ModuleDocFragment:
    DOCUMENTATION = """
options:
  host: {type: str, default: 127.0.0.1, description: Address of the server.}
  port: {type: int, required: true, description: Port of the server.}
  user: {type: str, description: ACL user.}
  password: {type: str, description: Its password.}
  tls: {type: bool, default: false, description: Whether the port speaks TLS; the certificate is always verified.}
  tls_ca: {type: path, description: PEM file of the authority; implies tls.}
"""
