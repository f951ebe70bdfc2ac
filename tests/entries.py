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
EMPTY = bytes.fromhex("4bc7eefe6bd51b575d2379aaeaabcf6f")  # under K and N12, with associated data "x"

THREADS = {"threads": 1}

RFC = named("chacha20-poly1305.json", "RFC 8439", "2.8.2")
DRAFT = named("xchacha20-poly1305.json", "draft-irtf-cfrg-xchacha-03", "A.3.1")
MAC = named("poly1305.json", "RFC 8439", "2.5.2")


def sealing(v: Any) -> dict[str, Any]:
    return {"nonce": v.nonce, "data": v.msg, "associated_data": v.aad}


def opening(v: Any) -> dict[str, Any]:
    return {"nonce": v.nonce, "data": v.ciphertext + v.tag, "associated_data": v.aad}


def key_methods(name: str, v: Any) -> dict[str, dict[str, Any]]:
    """The methods of a key type that encrypt and decrypt."""
    nonce, aad = {"nonce": v.nonce}, {"associated_data": v.aad}
    return {
        name + method: good
        for method, good in {
            ".encrypt": sealing(v) | THREADS,
            ".decrypt": opening(v) | THREADS,
            ".encrypt_into": sealing(v) | {"buf": bytearray(len(v.msg) + 16)} | THREADS,
            ".decrypt_into": opening(v) | {"buf": bytearray(len(v.msg))} | THREADS,
            ".encrypt_detached": sealing(v),
            ".decrypt_detached": nonce | {"data": v.ciphertext, "tag": v.tag} | aad,
            ".encrypt_in_place": nonce | {"buf": bytearray(v.msg)} | aad,
            ".decrypt_in_place": nonce | {"buf": bytearray(v.ciphertext), "tag": v.tag} | aad,
            ".encryptor": nonce | aad,
            ".unverified_decryptor": nonce | aad,
        }.items()
    }


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


class Entries(dict[str, dict[str, Any]]):
    """Arguments by entry point. Buffers that a call writes to are new for whoever asks."""

    def __getitem__(self, name: str) -> dict[str, Any]:
        good = super().__getitem__(name)
        return {p: bytearray(v) if isinstance(v, bytearray) else v for p, v in good.items()}


# Parameters stand in the order in which they are checked.
TABLE: dict[str, dict[str, Any]] = {
    "chacha20.block": {"key": K, "counter": 1, "nonce": N12},
    "chacha20.cipher": {"key": K, "counter": 1, "nonce": N12, "data": DATA, "rounds": 20, "out": None},
    "chacha20.hchacha20": {"key": K, "nonce16": N16},
    "xchacha20.cipher": {"key": K, "counter": 1, "nonce": N24, "data": DATA, "rounds": 20, "out": None},
    "poly1305.mac": {"key": MAC.key, "message": MAC.msg},
    "poly1305.verify": {"key": MAC.key, "message": MAC.msg, "tag": MAC.tag},
    "chacha20poly1305.encrypt": {"key": RFC.key} | sealing(RFC) | THREADS,
    "chacha20poly1305.decrypt": {"key": RFC.key} | opening(RFC) | THREADS,
    "xchacha20poly1305.encrypt": {"key": DRAFT.key} | sealing(DRAFT) | THREADS,
    "xchacha20poly1305.decrypt": {"key": DRAFT.key} | opening(DRAFT) | THREADS,
    "ChaCha20Poly1305": {"key": RFC.key},
    **key_methods("ChaCha20Poly1305", RFC),
    "ChaCha20Poly1305.generate_key": {},
    "XChaCha20Poly1305": {"key": DRAFT.key},
    **key_methods("XChaCha20Poly1305", DRAFT),
    "XChaCha20Poly1305.generate_key": {},
    "XChaCha20Poly1305.generate_nonce": {},
    "Encryptor.update": {"data": DATA},
    "Encryptor.update_into": {"data": DATA, "buf": bytearray(len(DATA))},
    "Encryptor.finalize": {},
    "UnverifiedDecryptor.update": {"data": DATA},
    "UnverifiedDecryptor.update_into": {"data": DATA, "buf": bytearray(len(DATA))},
    "UnverifiedDecryptor.verify": {"tag": EMPTY},
    "Poly1305": {"key": MAC.key},
    "Poly1305.update": {"data": MAC.msg},
    "Poly1305.finalize": {},
    "Poly1305.verify": {"tag": MAC.key[16:]},  # of an empty message
    "Poly1305.digest": {},
    "Poly1305.hexdigest": {},
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
            ".update_into": {"data": DATA, "buf": bytearray(len(DATA))} | THREADS,
            ".keystream": {"n": 5},
            ".seek": {"byte": 3},
            ".tell": {},
        }.items()
    },
}
ENTRIES = Entries(TABLE)

# What methods make and nobody else can; an empty message then has the tag EMPTY.
MADE: dict[str, Callable[..., Any]] = {
    "Encryptor": lambda api, key=K: api.ChaCha20Poly1305(key).encryptor(N12, b"x"),
    "UnverifiedDecryptor": lambda api, key=K: api.ChaCha20Poly1305(key).unverified_decryptor(N12, b"x"),
}
KEYS = ["ChaCha20Poly1305", "XChaCha20Poly1305"]
STREAMS = ["ChaCha20", "XChaCha20", "ChaCha20Legacy"]
KEYED = [*KEYS, *STREAMS, "Poly1305"]  # what a constructor makes with a key
CIPHERING = [*STREAMS, *MADE]  # what has update and update_into
TYPES = [*KEYED, *MADE, "Tag"]
AEADS = [*KEYS, "chacha20poly1305", "xchacha20poly1305"]
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
    """A new object of this type."""
    return MADE[name](api, **changed) if name in MADE else getattr(api, name)(**ENTRIES[name] | changed)


def computed(thing: Any) -> bytes:
    """What an object now makes of known input, which tells whether it is as it was."""
    if isinstance(thing, bytes):
        return bytes(thing)
    if hasattr(thing, "digest"):
        thing.update(DATA)
        return bytes(thing.digest())
    if hasattr(thing, "update"):
        return bytes(thing.update(bytes(100)))
    return bytes(thing.encrypt(bytes(thing.NONCE_SIZE), DATA))


def having(*parameters: str) -> list[tuple[str, str]]:
    """Every entry point that has one of these parameters, with the parameter."""
    return [(name, p) for name, good in ENTRIES.items() for p in good if p in parameters]


def refuses(error: type[BaseException], text: str) -> AbstractContextManager[Any]:
    """Expects this error with exactly this text."""
    return pytest.raises(error, match=f"^{re.escape(text)}$")
