"""Every entry point with good arguments, so that a promise about all of them is one test."""

import re
from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager
from operator import attrgetter
from types import ModuleType
from typing import Any

import pytest
from vectors import named

K = bytes(range(32))
N8, N12, N16, N24 = bytes(8), bytes(12), bytes(16), bytes(24)
DATA = b"The quick brown fox"

RFC = named("chacha20-poly1305.json", "RFC 8439", "2.8.2")
DRAFT = named("xchacha20-poly1305.json", "draft-irtf-cfrg-xchacha-03", "A.3.1")
MAC = named("poly1305.json", "RFC 8439", "2.5.2")


def sealing(v: Any) -> dict[str, Any]:
    return {"nonce": v.nonce, "data": v.msg, "associated_data": v.aad}


def opening(v: Any) -> dict[str, Any]:
    return {"nonce": v.nonce, "data": v.ciphertext + v.tag, "associated_data": v.aad}


def many(v: Any) -> dict[str, dict[str, Any]]:
    """The methods of a key for many messages, with one."""
    one = {"associated_data": v.aad}
    nonces, associated_datas = {"nonces": [v.nonce]}, {"associated_datas": [v.aad]}
    size, sealed = len(v.msg), v.ciphertext + v.tag
    return {
        ".encrypt_many": nonces | {"datas": [v.msg]} | associated_datas,
        ".decrypt_many": nonces | {"datas": [sealed]} | associated_datas,
        ".encrypt_packed": {"nonces": v.nonce, "data": v.msg, "offsets": array("q", [0, size])}
        | {"out": bytearray(size + 16)}
        | one,
        ".decrypt_packed": {"nonces": v.nonce, "data": sealed, "offsets": array("q", [0, size + 16])}
        | {"out": bytearray(size), "failed": bytearray(1)}
        | one,
    }


def under_keys(v: Any) -> dict[str, dict[str, Any]]:
    """The functions for many messages, with one."""
    return {m: {"keys": [v.key]} | good for m, good in many(v).items() if m.endswith("many")}


def stream(nonce: bytes) -> dict[str, Any]:
    return {"key": K, "nonce": nonce, "counter": 0, "rounds": 20}


# Parameters stand in the order in which they are checked.
ENTRIES: dict[str, dict[str, Any]] = {
    "chacha20.block": {"key": K, "counter": 1, "nonce": N12},
    "chacha20.cipher": {"key": K, "counter": 1, "nonce": N12, "data": DATA, "rounds": 20, "out": None},
    "chacha20.hchacha20": {"key": K, "nonce16": N16},
    "xchacha20.cipher": {"key": K, "counter": 1, "nonce": N24, "data": DATA, "rounds": 20, "out": None},
    "poly1305.mac": {"key": MAC.key, "message": MAC.msg},
    "poly1305.verify": {"key": MAC.key, "message": MAC.msg, "tag": MAC.tag},
    "chacha20poly1305.encrypt": {"key": RFC.key} | sealing(RFC),
    "chacha20poly1305.decrypt": {"key": RFC.key} | opening(RFC),
    "xchacha20poly1305.encrypt": {"key": DRAFT.key} | sealing(DRAFT),
    "xchacha20poly1305.decrypt": {"key": DRAFT.key} | opening(DRAFT),
    "ChaCha20Poly1305": {"key": RFC.key},
    "ChaCha20Poly1305.encrypt": sealing(RFC),
    "ChaCha20Poly1305.decrypt": opening(RFC),
    "ChaCha20Poly1305.generate_key": {},
    "XChaCha20Poly1305": {"key": DRAFT.key},
    "XChaCha20Poly1305.encrypt": sealing(DRAFT),
    "XChaCha20Poly1305.decrypt": opening(DRAFT),
    "XChaCha20Poly1305.generate_key": {},
    "XChaCha20Poly1305.generate_nonce": {},
    **{"ChaCha20Poly1305" + method: good for method, good in many(RFC).items()},
    **{"XChaCha20Poly1305" + method: good for method, good in many(DRAFT).items()},
    **{"chacha20poly1305" + method: good for method, good in under_keys(RFC).items()},
    **{"xchacha20poly1305" + method: good for method, good in under_keys(DRAFT).items()},
    "Tag": {"tag": MAC.tag},
    **{
        name + method: good
        for name, nonce in (("ChaCha20", N12), ("XChaCha20", N24), ("ChaCha20Legacy", N8))
        for method, good in {
            "": stream(nonce),
            ".update": {"data": DATA},
            ".update_into": {"data": DATA, "buf": bytearray(len(DATA))},
            ".keystream": {"n": 5},
            ".seek": {"byte": 3},
            ".tell": {},
        }.items()
    },
}
TYPES = ["ChaCha20Poly1305", "XChaCha20Poly1305", "ChaCha20", "XChaCha20", "ChaCha20Legacy", "Tag"]
STREAMS = ["ChaCha20", "XChaCha20", "ChaCha20Legacy"]
AEADS = ["ChaCha20Poly1305", "XChaCha20Poly1305", "chacha20poly1305", "xchacha20poly1305"]
NONCE_SIZES = {
    "ChaCha20": 12,
    "XChaCha20": 24,
    "ChaCha20Legacy": 8,
    "ChaCha20Poly1305": 12,
    "XChaCha20Poly1305": 24,
}


def entry(api: ModuleType, name: str) -> Callable[..., Any]:
    """The callable of this name; a method comes bound to a new object."""
    owner, _, method = name.rpartition(".")
    return getattr(make(api, owner), method) if owner in TYPES else attrgetter(name)(api)


def make(api: ModuleType, name: str, **changed: Any) -> Any:
    return getattr(api, name)(**ENTRIES[name] | changed)


def having(*parameters: str) -> list[tuple[str, str]]:
    """Every entry point that has one of these parameters, with the parameter."""
    return [(name, p) for name, good in ENTRIES.items() for p in good if p in parameters]


def refuses(error: type[BaseException], text: str) -> AbstractContextManager[Any]:
    """Expects this error with exactly this text."""
    return pytest.raises(error, match=f"^{re.escape(text)}$")
