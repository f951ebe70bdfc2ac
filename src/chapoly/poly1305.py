"""Poly1305, the one-time authenticator (RFC 8439 2.5)."""

from chapoly._backend import implementation as _implementation

mac = _implementation.poly1305_mac
verify = _implementation.poly1305_verify

__all__ = ["mac", "verify"]
