"""The AEAD of RFC 8439 for a message in parts: what encryptor() and unverified_decryptor() return."""

from __future__ import annotations

from _warnings import warn  # warnings.warn itself; when __del__ runs, nothing may be left to import from

from chapoly.errors import InvalidTag
from chapoly.pure._arguments import at_most, check_output, octets, view
from chapoly.pure._claim import Claim
from chapoly.pure._types import final
from chapoly.pure.aead import DATA_MAX, TAG_SIZE, lengths, padded, padding, view_of_associated
from chapoly.pure.chacha20 import BLOCK_SIZE, joined, keystream, keystream_blocks, write, xor
from chapoly.pure.poly1305 import Mac

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final, NoReturn, Self, TypeVar

    from chapoly.pure._arguments import Buffer, WritableBuffer
    from chapoly.pure.poly1305 import Tag

    Message = TypeVar("Message", bound="_Message")


class _Message:
    """A message so far. Buffers are acquired before the object is claimed."""

    __slots__ = ("_associated_size", "_claim", "_key", "_mac", "_nonce", "_size", "_verified")

    _NOUN: str  # constants of each type
    _ENCRYPTS: bool

    _associated_size: int
    _claim: Claim
    _key: bytes
    _mac: Mac
    _nonce: bytes
    _size: int  # of the data so far
    _verified: bool

    def __new__(cls) -> Self:
        raise TypeError(f"cannot create '{cls.__module__}.{cls.__name__}' instances")

    def _next(self, data: memoryview) -> Iterator[bytes]:
        """The data xor the keystream that comes next; the MAC takes the ciphertext, whichever of them it is.

        The message moves on when all of it has been taken.
        """
        done = 0
        for piece in xor(
            data, keystream(self._key, self._nonce, 20, BLOCK_SIZE + self._size, len(data))
        ):  # block 0 has given the one-time key
            self._mac.update([piece if self._ENCRYPTS else bytes(data[done : done + len(piece)])])
            done += len(piece)
            yield piece
        self._size += done

    def _update(self, data: Buffer) -> bytes:
        with view("data", data) as source, self._claim:
            at_most("data", len(source), DATA_MAX - self._size)
            return self._claim.whole(joined, self._next(source))

    def _update_into(self, data: Buffer, buf: WritableBuffer) -> int:
        with view("data", data) as source, view("buf", buf) as target, self._claim:
            at_most("data", len(source), DATA_MAX - self._size)
            check_output("buf", target, len(source), data=source)
            return self._claim.whole(write, self._next(source), target)

    def _finish(self) -> Tag:
        """The tag of the message, which is closed."""
        self._claim.closed = True
        self._mac.update([padding(self._size), lengths(self._associated_size, self._size)])
        tag = self._mac.tag()
        self._close()
        return tag

    def _close(self) -> None:
        self._claim.closed = True
        self._key = self._nonce = b""
        self._mac.forget()

    def __enter__(self) -> Self:
        """The object itself."""
        with self._claim:
            return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    __getstate__ = __reduce__


def begin(kind: type[Message], key: bytes, nonce: bytes, associated_data: Buffer | None) -> Message:
    """A new message, after its associated data."""
    mac = Mac(keystream_blocks(key, 0, nonce, 1, 20)[:32])
    with view_of_associated(associated_data) as associated:
        mac.update(padded(associated))
        size = len(associated)
    self: Message = object.__new__(kind)
    self._key, self._nonce, self._mac = key, nonce, mac
    self._associated_size, self._size, self._verified = size, 0, False
    self._claim = Claim(kind._NOUN)
    return self


@final
class Encryptor(_Message):
    """A message that is being encrypted in parts: ChaCha20-Poly1305 or XChaCha20-Poly1305 (RFC 8439 2.8).

    The encryptor() of a key makes it. What update returns and then the tag are together what encrypt() of the
    whole message returns, in whatever parts it came, 274,877,906,880 bytes at most.

    An object is for one call at a time: a second one meanwhile, and any call after finalize or the end of
    `with`, is a StateError.

        >>> from chapoly import ChaCha20Poly1305
        >>> aead = ChaCha20Poly1305(bytes(range(32)))
        >>> encryptor = aead.encryptor(bytes(12), b"from: HQ")
        >>> ciphertext = encryptor.update(b"attack ") + encryptor.update(b"at dawn")
        >>> aead.decrypt(bytes(12), ciphertext + encryptor.finalize(), b"from: HQ")
        b'attack at dawn'
    """

    __slots__ = ()
    __module__ = "chapoly"

    _NOUN: Final[str] = "encryptor"  # type: ignore[misc]
    _ENCRYPTS: Final[bool] = True  # type: ignore[misc]

    def update(self, data: Buffer) -> bytes:
        """Encrypts the next bytes of the message, and returns as many as data has.

        data must not change during the call.
        Raises CounterOverflow, and changes nothing, if the message would exceed 274,877,906,880 bytes.

            >>> from chapoly import ChaCha20Poly1305
            >>> ChaCha20Poly1305(bytes(range(32))).encryptor(bytes(12)).update(b"attack at dawn").hex()
            '79cc3650ce8d86b067413800d82d'
        """
        return self._update(data)

    def update_into(self, data: Buffer, buf: WritableBuffer) -> int:
        """Does what update does, but writes the result to buf and returns its length.

        buf is a writable buffer exactly as long as data. It may start where data starts, to work in place;
        otherwise they must not overlap. Neither may change during the call.
        Raises CounterOverflow as update does, and ValueError; then it has written nothing.

            >>> from chapoly import ChaCha20Poly1305
            >>> buf = bytearray(b"attack at dawn")
            >>> ChaCha20Poly1305(bytes(range(32))).encryptor(bytes(12)).update_into(buf, buf)
            14
            >>> buf.hex()
            '79cc3650ce8d86b067413800d82d'
        """
        return self._update_into(data, buf)

    def finalize(self) -> Tag:
        """The Tag of the message, which ends with it.

        It is 16 bytes, and decryption needs it. The object is closed: any further call is a StateError.

            >>> from chapoly import ChaCha20Poly1305
            >>> ChaCha20Poly1305(bytes(range(32))).encryptor(bytes(12), b"x").finalize()
            Tag('4bc7eefe6bd51b575d2379aaeaabcf6f')
        """
        with self._claim:
            return self._finish()

    def __exit__(self, *exception: object) -> None:
        """Closes the object for good and wipes its keys (the pure implementation can only drop them)."""
        self._claim.take()
        self._close()
        self._claim.give()


@final
class UnverifiedDecryptor(_Message):
    """A message that is being decrypted in parts, before it is verified (RFC 8439 2.8).

    The unverified_decryptor() of a ChaCha20Poly1305 or XChaCha20Poly1305 key makes it. What update returns is
    UNVERIFIED: anyone may have written or changed it, until verify, given the tag, returns without an
    exception. Until then do nothing with it that cannot be undone, and discard it if there is InvalidTag.
    Where the whole message fits into memory, use decrypt(), which shows nothing of a forged one.

    Leaving a `with` block raises InvalidTag unless verify has succeeded; an exception that is on its way is
    kept. An object that is dropped without either emits a ResourceWarning.

    An object is for one call at a time: a second one meanwhile, and any call after verify or the end of
    `with`, is a StateError.

        >>> from chapoly import ChaCha20Poly1305
        >>> aead = ChaCha20Poly1305(bytes(range(32)))
        >>> ciphertext, tag = aead.encrypt_detached(bytes(12), b"attack at dawn", b"from: HQ")
        >>> with aead.unverified_decryptor(bytes(12), b"from: HQ") as decryptor:
        ...     plaintext = decryptor.update(ciphertext[:7]) + decryptor.update(ciphertext[7:])
        ...     decryptor.verify(tag)
        >>> plaintext
        b'attack at dawn'
    """

    __slots__ = ()
    __module__ = "chapoly"

    _NOUN: Final[str] = "decryptor"  # type: ignore[misc]
    _ENCRYPTS: Final[bool] = False  # type: ignore[misc]

    def update(self, data: Buffer) -> bytes:
        """Decrypts the next bytes of the message, and returns as many as data has, UNVERIFIED.

        data must not change during the call.
        Raises CounterOverflow, and changes nothing, if the message would exceed 274,877,906,880 bytes.

            >>> from chapoly import ChaCha20Poly1305
            >>> decryptor = ChaCha20Poly1305(bytes(range(32))).unverified_decryptor(bytes(12))
            >>> decryptor.update(bytes.fromhex("79cc3650ce8d86b067413800d82d"))
            b'attack at dawn'
        """
        return self._update(data)

    def update_into(self, data: Buffer, buf: WritableBuffer) -> int:
        """Does what update does, but writes the UNVERIFIED result to buf and returns its length.

        buf is a writable buffer exactly as long as data. It may start where data starts, to work in place;
        otherwise they must not overlap. Neither may change during the call.
        Raises CounterOverflow as update does, and ValueError; then it has written nothing.

            >>> from chapoly import ChaCha20Poly1305
            >>> buf = bytearray.fromhex("79cc3650ce8d86b067413800d82d")
            >>> decryptor = ChaCha20Poly1305(bytes(range(32))).unverified_decryptor(bytes(12))
            >>> decryptor.update_into(buf, buf)
            14
            >>> buf
            bytearray(b'attack at dawn')
        """
        return self._update_into(data, buf)

    def verify(self, tag: Buffer) -> None:
        """Raises InvalidTag unless tag is that of the message, which ends with it.

        Compares in constant time. The object is then closed: any further call is a StateError. tag is 16
        bytes; any other length is an InvalidTag, too, but leaves the object open.

            >>> from chapoly import ChaCha20Poly1305
            >>> decryptor = ChaCha20Poly1305(bytes(range(32))).unverified_decryptor(bytes(12), b"x")
            >>> decryptor.verify(bytes.fromhex("4bc7eefe6bd51b575d2379aaeaabcf6f"))
        """
        expected = octets("tag", tag, TAG_SIZE, InvalidTag)
        with self._claim:
            self._verified = self._finish() == expected
            if not self._verified:
                raise InvalidTag("tag does not match")

    def __exit__(self, *exception: object) -> None:
        """Closes the object for good and wipes its keys (the pure implementation can only drop them).

        Raises InvalidTag unless verify has succeeded or an exception is on its way.
        """
        self._claim.take()
        self._close()
        self._claim.give()
        if not self._verified and (not exception or exception[0] is None):
            raise InvalidTag("the with block ended without a successful verify()")

    def __del__(self) -> None:
        if hasattr(self, "_claim") and not self._claim.closed:  # else no constructor has finished
            self._close()
            warn(
                "an UnverifiedDecryptor was dropped without verify(): nobody has vouched for its plaintext",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
