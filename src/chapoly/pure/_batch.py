"""Many messages in one call: lists of packets, and packets packed in one buffer.

All arguments are checked before the first packet is computed. Native code gains speed by computing blocks of
many packets at once; here one comes after another.
"""

from __future__ import annotations

import sys

from chapoly.errors import InvalidKey, InvalidNonce, InvalidTag
from chapoly.pure._arguments import at_most, check_output, octets, overlap, view

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack
    from typing import Any

    from chapoly.pure._arguments import Buffer, WritableBuffer

    Packet = tuple[Any, ...]  # what encrypt or decrypt takes: a key, unless it has one, a nonce and so on
    Lists = tuple[Any, ...]  # keys, unless the same holds for all packets; nonces, datas, associated_datas

TAG_SIZE = 16
DATA_MAX = 64 * (2**32 - 1)

# How the buffer protocol may write a native integer of eight bytes: where `l` has only four, its size tells.
INT64 = {order + code for order in ("", "@", "=", "<" if sys.byteorder == "little" else ">") for code in "ql"}


def many_views() -> ExitStack:
    """Gathers views and then releases them all."""
    from contextlib import ExitStack

    return ExitStack()


# ---- Lists: a message, its nonce and the rest stand at the same index. ----


def items(
    name: str, value: Sequence[Any], count: int | None = None, *, kind: str = "a sequence"
) -> list[Any]:
    """What a sequence holds now, so that changing it later changes nothing; `count` of them."""
    if isinstance(value, (str, dict)) or not hasattr(type(value), "__getitem__"):
        raise TypeError(f"{name} must be {kind}, not {type(value).__name__}")
    held = list(value)
    return held if count is None else as_many(name, held, count)


def as_many(name: str, held: list[Any], count: int) -> list[Any]:
    """Refuses another number of items."""
    if len(held) != count:
        raise ValueError(f"{name} must have {count} item{'s' if count != 1 else ''}, got {len(held)}")
    return held


def associated_of(views: ExitStack, value: Buffer | Sequence[Buffer | None] | None, count: int) -> list[Any]:
    """The associated data of each message: none, the same for all, or its own."""
    if value is None:
        return [None] * count
    try:
        return [views.enter_context(view("associated_datas", value))] * count  # type: ignore[arg-type]
    except TypeError:
        pass  # it is no buffer
    held = items("associated_datas", value, count, kind="bytes-like or a sequence")  # type: ignore[arg-type]
    return [
        None if item is None else views.enter_context(view(f"associated_datas[{i}]", item))
        for i, item in enumerate(held)
    ]


def packets_of(views: ExitStack, nonce_size: int, most: int, lists: Lists) -> list[Packet]:
    """The packets that these lists hold, with no more than `most` bytes of data each."""
    *keys, nonces, datas, associated_datas = lists
    columns: list[list[Any]] = []
    count = None  # not known before the first list
    for name, values, size, error in [
        *(("keys", each, 32, InvalidKey) for each in keys),
        ("nonces", nonces, nonce_size, InvalidNonce),
    ]:
        held = enumerate(items(name, values, count))
        columns.append([octets(f"{name}[{i}]", item, size, error) for i, item in held])
        count = len(columns[0])
    columns.append([])
    for i, data in enumerate(items("datas", datas, count)):
        columns[-1].append(views.enter_context(view(f"datas[{i}]", data)))
        at_most(f"datas[{i}]", len(columns[-1][i]), most)
    columns.append(associated_of(views, associated_datas, len(columns[0])))
    return list(zip(*columns, strict=True))


def encrypt_each(encrypt: Callable[..., bytes], nonce_size: int, *lists: Any) -> list[bytes]:
    """What encrypt returns for each packet of these lists."""
    with many_views() as views:
        return [encrypt(*packet) for packet in packets_of(views, nonce_size, DATA_MAX, lists)]


def decrypt_each(decrypt: Callable[..., bytes], nonce_size: int, *lists: Any) -> list[bytes | None]:
    """What decrypt returns for each packet of these lists, or None where it raises InvalidTag."""
    with many_views() as views:
        packets = packets_of(views, nonce_size, DATA_MAX + TAG_SIZE, lists)
        return [opened(decrypt, packet) for packet in packets]


def opened(decrypt: Callable[..., bytes], packet: Packet) -> bytes | None:
    """The plaintext, or None if the packet is forged or too short."""
    try:
        return decrypt(*packet)
    except InvalidTag:
        return None


# ---- Packed: the nonces in one buffer, the packets in another, and where each begins in a third. ----


def int64s(name: str, value: Buffer, count: int) -> list[int]:
    """A buffer of `count` native 64-bit integers."""
    with view(name, value) as memory, memoryview(value) as typed:
        if typed.itemsize != 8 or typed.format not in INT64:
            raise TypeError(f"{name} must be int64, got items of format '{typed.format}'")
        with memory.cast("q") as numbers:
            return as_many(name, numbers.tolist(), count)


def check_offsets(offsets: list[int], size: int, most: int, *, sealed: bool) -> None:
    """Refuses offsets that do not ascend within `size` bytes, and a packet of a size that none can have."""
    for i, offset in enumerate(offsets):
        low = offsets[i - 1] if i > 0 else 0
        if not low <= offset <= size:
            raise ValueError(f"offsets[{i}] must be {low} to {size}, got {offset}")
        if i == 0:
            continue
        name = f"data[offsets[{i - 1}]:offsets[{i}]]"
        at_most(name, offset - low, most)
        if sealed and offset - low < TAG_SIZE:
            raise ValueError(f"{name} must be at least {TAG_SIZE} bytes, got {offset - low}")


def check_apart(name: str, output: memoryview, **others: Buffer) -> None:
    """Refuses an output that overlaps any of these; none of them is where it could work in place."""
    for other_name, value in others.items():
        with view(other_name, value) as other:
            if overlap(output, other, in_place=False):
                raise ValueError(f"{name} overlaps {other_name}")


class Packed:
    """The arguments of a call for packed packets, checked."""

    def __init__(
        self,
        views: ExitStack,
        nonce_size: int,
        nonces: Buffer,
        data: Buffer,
        offsets: Buffer,
        out: WritableBuffer,
        failed: WritableBuffer | None,
        associated_data: Buffer | None,
        *,
        sealed: bool,
    ) -> None:
        self.growth = -TAG_SIZE if sealed else TAG_SIZE
        self.nonce_size = nonce_size
        self.nonces = views.enter_context(view("nonces", nonces))
        if len(self.nonces) % nonce_size:
            raise InvalidNonce(f"nonces must be a multiple of {nonce_size} bytes, got {len(self.nonces)}")
        count = len(self.nonces) // nonce_size
        self.data = views.enter_context(view("data", data))
        self.offsets = int64s("offsets", offsets, count + 1)
        check_offsets(self.offsets, len(self.data), DATA_MAX + TAG_SIZE * sealed, sealed=sealed)
        self.out = views.enter_context(view("out", out))
        check_output("out", self.out, self.offsets[-1] + self.growth * count)
        inputs: dict[str, Buffer] = {"nonces": self.nonces, "data": self.data, "offsets": offsets}
        if sealed:
            self.failed = views.enter_context(view("failed", failed))  # type: ignore[arg-type]
            check_output("failed", self.failed, count)
        if associated_data is not None:
            inputs["associated_data"] = views.enter_context(view("associated_data", associated_data))
        self.associated_data = inputs.get("associated_data")
        check_apart("out", self.out, **inputs)
        if sealed:
            check_apart("failed", self.failed, **inputs, out=self.out)

    def __iter__(self) -> Iterator[tuple[memoryview, memoryview, memoryview]]:
        """Of each packet the nonce, the data, and where its result goes."""
        for i, (start, end) in enumerate(zip(self.offsets, self.offsets[1:], strict=False)):
            to, to_end = start + self.growth * i, end + self.growth * (i + 1)
            with (
                self.nonces[i * self.nonce_size : (i + 1) * self.nonce_size] as nonce,
                self.data[start:end] as data,
                self.out[to:to_end] as target,
            ):
                yield nonce, data, target


class _Batches:
    """What the two types of keys have in common for many messages; see encrypt and decrypt for one."""

    __slots__ = ()

    if TYPE_CHECKING:
        NONCE_SIZE: int

        def encrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes: ...
        def decrypt(self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None) -> bytes: ...

    def encrypt_many(
        self,
        nonces: Sequence[Buffer],
        datas: Sequence[Buffer],
        associated_datas: Buffer | Sequence[Buffer | None] | None = None,
    ) -> list[bytes]:
        """Does what encrypt does for each of many messages, which together take far less time (RFC 8439 2.8).

        nonces and datas are sequences with a nonce and the data of each message. associated_datas is None,
        one bytes-like object for all messages, or a sequence with one, or None, for each. Returns a list of
        what encrypt returns for each message.
        The items are held for the whole call: replacing them meanwhile changes nothing. But no item itself
        may change.
        Raises what encrypt raises, with the index of the item; TypeError for what is no sequence, and
        ValueError for another number of items. Then nothing has been encrypted.

            >>> from chapoly import ChaCha20Poly1305
            >>> aead = ChaCha20Poly1305(bytes(range(32)))
            >>> nonces = [i.to_bytes(12, "little") for i in range(2)]
            >>> packets = aead.encrypt_many(nonces, [b"attack at dawn", b"retreat"], b"from: HQ")
            >>> packets[0].hex()
            '79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164'
            >>> packets[1] == aead.encrypt(nonces[1], b"retreat", b"from: HQ")
            True
        """
        return encrypt_each(self.encrypt, self.NONCE_SIZE, nonces, datas, associated_datas)

    def decrypt_many(
        self,
        nonces: Sequence[Buffer],
        datas: Sequence[Buffer],
        associated_datas: Buffer | Sequence[Buffer | None] | None = None,
    ) -> list[bytes | None]:
        """Verifies and decrypts each of many messages, which together take far less time (RFC 8439 2.8).

        nonces, datas and associated_datas are as in encrypt_many, but datas holds what it returned. Returns a
        list with the plaintext of each message, or None where anything is not as it was, or where data is
        shorter than a tag. No message is decrypted before it has been verified, and none that is bad keeps
        the others from being decrypted.
        Raises what encrypt_many raises; then nothing has been decrypted. Never raises InvalidTag.

            >>> from chapoly import ChaCha20Poly1305
            >>> aead = ChaCha20Poly1305(bytes(range(32)))
            >>> nonces = [i.to_bytes(12, "little") for i in range(3)]
            >>> packets = aead.encrypt_many(nonces, [b"attack at dawn", b"retreat", b"hold"])
            >>> aead.decrypt_many(nonces, [packets[0], b"forged", packets[2]])
            [b'attack at dawn', None, b'hold']
        """
        return decrypt_each(self.decrypt, self.NONCE_SIZE, nonces, datas, associated_datas)

    def encrypt_packed(
        self,
        nonces: Buffer,
        data: Buffer,
        offsets: Buffer,
        out: WritableBuffer,
        associated_data: Buffer | None = None,
    ) -> int:
        """Encrypts many messages that stand in one buffer, without an object for any of them (RFC 8439 2.8).

        nonces holds the nonces of n messages, one after the other. offsets holds n + 1 native 64-bit
        integers, as array("q") or NumPy's int64 do, none less than the one before: message i is
        data[offsets[i]:offsets[i + 1]]. Its ciphertext and tag are written to out from offsets[i] + 16 * i
        on; out is a writable buffer of exactly offsets[n] + 16 * n bytes. associated_data goes with each
        message. Returns the number of bytes written.
        out must not overlap what was passed in, not even to work in place, since each result lies further on
        than its message. Nothing that was passed in may change during the call.
        Raises InvalidNonce if nonces is no multiple of the size of a nonce; ValueError for offsets that are
        not as they must be, a wrong size of out, or an overlap; CounterOverflow for a message that is too
        long. When it raises, it has written nothing.

            >>> from array import array
            >>> from chapoly import ChaCha20Poly1305
            >>> aead = ChaCha20Poly1305(bytes(range(32)))
            >>> nonces = bytes(12) + (1).to_bytes(12, "little")
            >>> data, offsets = b"attack at dawnretreat", array("q", [0, 14, 21])
            >>> out = bytearray(21 + 2 * 16)
            >>> aead.encrypt_packed(nonces, data, offsets, out)
            53
            >>> out[:14 + 16] == aead.encrypt(bytes(12), b"attack at dawn")
            True
        """
        with many_views() as views:
            packets = Packed(
                views, self.NONCE_SIZE, nonces, data, offsets, out, None, associated_data, sealed=False
            )
            for nonce, plaintext, target in packets:
                target[:] = self.encrypt(nonce, plaintext, packets.associated_data)
            return len(packets.out) - packets.offsets[0]

    def decrypt_packed(
        self,
        nonces: Buffer,
        data: Buffer,
        offsets: Buffer,
        out: WritableBuffer,
        failed: WritableBuffer,
        associated_data: Buffer | None = None,
    ) -> int:
        """Verifies and decrypts many messages that stand in one buffer (RFC 8439 2.8).

        nonces, data, offsets and associated_data are as in encrypt_packed; each message ends with its tag.
        The plaintext of message i is written to out from offsets[i] - 16 * i on; out is a writable buffer of
        exactly offsets[n] - 16 * n bytes. failed is a writable buffer of n bytes: byte i becomes 0, or 1 if
        anything in message i is not as it was, and then its plaintext is zeros. No message is decrypted
        before it has been verified. Returns the number of messages that failed.
        A message shorter than a tag is a ValueError, since results would overlap: leave it out beforehand.
        out and failed must overlap neither each other nor what was passed in.
        Raises what encrypt_packed raises, and then has written nothing. Never raises InvalidTag.

            >>> from array import array
            >>> from chapoly import ChaCha20Poly1305
            >>> aead = ChaCha20Poly1305(bytes(range(32)))
            >>> nonces = bytes(12) + (1).to_bytes(12, "little")
            >>> data = aead.encrypt(nonces[:12], b"attack at dawn") + bytes(7 + 16)
            >>> out, failed = bytearray(21), bytearray(2)
            >>> aead.decrypt_packed(nonces, data, array("q", [0, 30, 53]), out, failed)
            1
            >>> out, failed
            (bytearray(b'attack at dawn\\x00\\x00\\x00\\x00\\x00\\x00\\x00'), bytearray(b'\\x00\\x01'))
        """
        with many_views() as views:
            packets = Packed(
                views, self.NONCE_SIZE, nonces, data, offsets, out, failed, associated_data, sealed=True
            )
            for i, (nonce, ciphertext, target) in enumerate(packets):
                plaintext = opened(self.decrypt, (nonce, ciphertext, packets.associated_data))
                packets.failed[i] = plaintext is None
                target[:] = bytes(len(target)) if plaintext is None else plaintext
            return sum(packets.failed)
