"""ChaCha20-Poly1305: authenticated encryption with associated data (RFC 8439 2.8)."""

from __future__ import annotations

from chapoly.errors import InvalidTag
from chapoly.pure._arguments import (
    at_most,
    check_output,
    check_overlap,
    check_threads,
    key_of,
    nonce_of,
    octets,
    overlap,
    view,
)
from chapoly.pure._batch import _Batches, decrypt_each, encrypt_each
from chapoly.pure._types import final
from chapoly.pure.aead import (
    DATA_MAX,
    TAG_SIZE,
    decrypted,
    encrypt_to,
    encrypted,
    view_of_associated,
)
from chapoly.pure.chacha20 import joined, write
from chapoly.pure.incremental import Encryptor, UnverifiedDecryptor, begin

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, NoReturn, Self, SupportsIndex

    from chapoly.pure._arguments import Buffer, WritableBuffer
    from chapoly.pure.poly1305 import Tag


# ---- RFC 8439 2.8: AEAD construction. Keys and nonces are those of ChaCha20. ----


def seal(
    key: bytes, nonce: bytes, data: Buffer, associated_data: Buffer | None, threads: SupportsIndex
) -> bytes:
    """The ciphertext and its tag."""
    with view("data", data) as plaintext:
        at_most("data", len(plaintext), DATA_MAX)
        with view_of_associated(associated_data) as associated:
            check_threads(threads)
            ciphertext, tag = encrypted(key, nonce, plaintext, associated)
            ciphertext.write(tag)
            return ciphertext.getvalue()


def check_sealed(data: memoryview) -> None:
    """Refuses what is too long, or too short for a tag."""
    at_most("data", len(data), DATA_MAX + TAG_SIZE)
    if len(data) < TAG_SIZE:
        raise InvalidTag(f"data must be at least {TAG_SIZE} bytes, got {len(data)}")


def unseal(
    key: bytes, nonce: bytes, data: Buffer, associated_data: Buffer | None, threads: SupportsIndex
) -> bytes:
    """The plaintext, once the tag has been found right."""
    with view("data", data) as sealed:
        check_sealed(sealed)
        with view_of_associated(associated_data) as associated, sealed[:-TAG_SIZE] as ciphertext:
            check_threads(threads)
            return joined(decrypted(key, nonce, ciphertext, associated, bytes(sealed[-TAG_SIZE:])))


def encrypt(
    key: Buffer,
    nonce: Buffer,
    data: Buffer,
    associated_data: Buffer | None = None,
    *,
    threads: SupportsIndex = 1,
) -> bytes:
    """Encrypts and authenticates data: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305(key).encrypt does with the other arguments; for a new key each time.

        >>> from chapoly import chacha20poly1305
        >>> key, nonce = bytes(range(32)), bytes(12)
        >>> chacha20poly1305.encrypt(key, nonce, b"attack at dawn", b"from: HQ").hex()
        '79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164'
    """
    return seal(key_of(key), nonce_of(nonce, 12), data, associated_data, threads)


def decrypt(
    key: Buffer,
    nonce: Buffer,
    data: Buffer,
    associated_data: Buffer | None = None,
    *,
    threads: SupportsIndex = 1,
) -> bytes:
    """Verifies and decrypts what encrypt returned: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305(key).decrypt does with the other arguments; for a new key each time.

        >>> from chapoly import chacha20poly1305
        >>> key, nonce = bytes(range(32)), bytes(12)
        >>> data = bytes.fromhex("79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164")
        >>> chacha20poly1305.decrypt(key, nonce, data, b"from: HQ")
        b'attack at dawn'
    """
    return unseal(key_of(key), nonce_of(nonce, 12), data, associated_data, threads)


class _Key(_Batches):
    """What the two types of keys have in common. They differ in the nonce."""

    __slots__ = ("_key",)

    KEY_SIZE: Final[int] = 32
    NONCE_SIZE: int  # a constant of each type
    TAG_SIZE: Final[int] = 16

    _key: bytes

    def __new__(cls, key: Buffer) -> Self:
        self = object.__new__(cls)
        self._key = key_of(key)
        return self

    def _for_chacha20(self, nonce: Buffer) -> tuple[bytes, bytes]:
        """The key and the nonce with which ChaCha20 encrypts the message that has this nonce."""
        return self._key, nonce_of(nonce, 12)

    @staticmethod
    def generate_key() -> bytes:
        """A new key.

        It is 32 bytes from os.urandom.

            >>> from chapoly import ChaCha20Poly1305
            >>> len(ChaCha20Poly1305.generate_key())
            32
        """
        from os import urandom

        return urandom(32)

    def encrypt(
        self,
        nonce: Buffer,
        data: Buffer,
        associated_data: Buffer | None = None,
        *,
        threads: SupportsIndex = 1,
    ) -> bytes:
        """Encrypts and authenticates data, and authenticates associated_data with it (RFC 8439 2.8).

        nonce is 12 bytes, or 24 for XChaCha20Poly1305, never used with this key before. data is at most
        274,877,906,880 bytes. Returns the ciphertext followed by its tag, 16 bytes more than data. decrypt
        needs the same associated_data; None is the same as b"".
        Up to `threads` threads work on data together, fewer where each would have less than 512 KiB; the
        result is the same. The pure implementation checks the number and uses one thread.
        Nothing that was passed in may change during the call.
        Raises InvalidNonce, CounterOverflow for too much data, and ValueError for fewer threads than 1.

            >>> from chapoly import ChaCha20Poly1305
            >>> ChaCha20Poly1305(bytes(range(32))).encrypt(bytes(12), b"attack at dawn", b"from: HQ").hex()
            '79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164'
        """
        return seal(*self._for_chacha20(nonce), data, associated_data, threads)

    def decrypt(
        self,
        nonce: Buffer,
        data: Buffer,
        associated_data: Buffer | None = None,
        *,
        threads: SupportsIndex = 1,
    ) -> bytes:
        """Verifies what encrypt returned, and only then decrypts it (RFC 8439 2.8).

        nonce and associated_data are those that were given to encrypt. Returns the plaintext, 16 bytes less
        than data.
        Up to `threads` threads work on data together, fewer where each would have less than 512 KiB; the
        result is the same. The pure implementation checks the number and uses one thread.
        Nothing that was passed in may change during the call.
        Raises InvalidTag if anything is not as it was, and then says no more; InvalidNonce, CounterOverflow
        for more data than encrypt can return, and ValueError for fewer threads than 1.

            >>> from chapoly import ChaCha20Poly1305
            >>> data = bytes.fromhex("79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164")
            >>> ChaCha20Poly1305(bytes(range(32))).decrypt(bytes(12), data, b"from: HQ")
            b'attack at dawn'
        """
        return unseal(*self._for_chacha20(nonce), data, associated_data, threads)

    def encrypt_into(
        self,
        nonce: Buffer,
        data: Buffer,
        associated_data: Buffer | None,
        buf: WritableBuffer,
        *,
        threads: SupportsIndex = 1,
    ) -> int:
        """Does what encrypt does, but writes the result to buf and returns its length (RFC 8439 2.8).

        buf is a writable buffer exactly 16 bytes longer than data. It may start where data starts, to work in
        place; otherwise it must overlap neither nonce nor data nor associated_data.
        Raises what encrypt raises, and ValueError for a wrong size of buf or an overlap. When it raises, it
        has written nothing.

            >>> from chapoly import ChaCha20Poly1305
            >>> data, buf = b"attack at dawn", bytearray(14 + 16)
            >>> ChaCha20Poly1305(bytes(range(32))).encrypt_into(bytes(12), data, b"from: HQ", buf)
            30
            >>> buf.hex()
            '79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164'
        """
        inner = self._for_chacha20(nonce)
        with view("data", data) as plaintext:
            at_most("data", len(plaintext), DATA_MAX)
            with view_of_associated(associated_data) as associated, view("buf", buf) as target:
                size = len(plaintext)
                check_output(
                    "buf", target, size + TAG_SIZE, nonce=nonce, data=plaintext, associated_data=associated
                )
                check_threads(threads)
                with target[:size] as ciphertext:
                    target[size:] = encrypt_to(ciphertext, *inner, plaintext, associated)
                return size + TAG_SIZE

    def decrypt_into(
        self,
        nonce: Buffer,
        data: Buffer,
        associated_data: Buffer | None,
        buf: WritableBuffer,
        *,
        threads: SupportsIndex = 1,
    ) -> int:
        """Does what decrypt does, but writes the result to buf and returns its length (RFC 8439 2.8).

        buf is a writable buffer exactly 16 bytes shorter than data. It may start where data starts, to work
        in place; otherwise it must overlap neither nonce nor data nor associated_data.
        Raises what decrypt raises, and ValueError for a wrong size of buf or an overlap. When it raises, it
        has written nothing, but for one case: if the tag does not match, a buf apart from data is all zero.

            >>> from chapoly import ChaCha20Poly1305
            >>> data = bytes.fromhex("79cc3650ce8d86b067413800d82dca90a6ad99a264a04a1c4e5b2cd39164")
            >>> buf = bytearray(len(data) - 16)
            >>> ChaCha20Poly1305(bytes(range(32))).decrypt_into(bytes(12), data, b"from: HQ", buf)
            14
            >>> buf
            bytearray(b'attack at dawn')
        """
        inner = self._for_chacha20(nonce)
        with view("data", data) as sealed:
            check_sealed(sealed)
            with view_of_associated(associated_data) as associated, view("buf", buf) as target:
                size = len(sealed) - TAG_SIZE
                check_output("buf", target, size, nonce=nonce, data=sealed, associated_data=associated)
                check_threads(threads)
                with sealed[:size] as ciphertext:
                    try:
                        return write(decrypted(*inner, ciphertext, associated, bytes(sealed[size:])), target)
                    except InvalidTag:
                        if not overlap(target, sealed, in_place=False):  # then it is not in place
                            target[:] = bytes(size)
                        raise

    def encrypt_detached(
        self, nonce: Buffer, data: Buffer, associated_data: Buffer | None = None
    ) -> tuple[bytes, Tag]:
        """Does what encrypt does, but returns ciphertext and Tag apart (RFC 8439 2.8).

        The ciphertext is as long as data, the tag 16 bytes. Raises what encrypt raises.

            >>> from chapoly import ChaCha20Poly1305
            >>> aead = ChaCha20Poly1305(bytes(range(32)))
            >>> ciphertext, tag = aead.encrypt_detached(bytes(12), b"attack at dawn", b"from: HQ")
            >>> ciphertext.hex(), tag
            ('79cc3650ce8d86b067413800d82d', Tag('ca90a6ad99a264a04a1c4e5b2cd39164'))
        """
        inner = self._for_chacha20(nonce)
        with view("data", data) as plaintext:
            at_most("data", len(plaintext), DATA_MAX)
            with view_of_associated(associated_data) as associated:
                ciphertext, tag = encrypted(*inner, plaintext, associated)
                return ciphertext.getvalue(), tag

    def decrypt_detached(
        self, nonce: Buffer, data: Buffer, tag: Buffer, associated_data: Buffer | None = None
    ) -> bytes:
        """Verifies what encrypt_detached returned, and only then decrypts it (RFC 8439 2.8).

        data is the ciphertext, at most 274,877,906,880 bytes, tag is 16 bytes; any other length does not
        match. Returns the plaintext, as long as data. Raises what decrypt raises.

            >>> from chapoly import ChaCha20Poly1305
            >>> data = bytes.fromhex("79cc3650ce8d86b067413800d82d")
            >>> tag = bytes.fromhex("ca90a6ad99a264a04a1c4e5b2cd39164")
            >>> ChaCha20Poly1305(bytes(range(32))).decrypt_detached(bytes(12), data, tag, b"from: HQ")
            b'attack at dawn'
        """
        inner = self._for_chacha20(nonce)
        with view("data", data) as ciphertext:
            at_most("data", len(ciphertext), DATA_MAX)
            given = octets("tag", tag, TAG_SIZE, InvalidTag)
            with view_of_associated(associated_data) as associated:
                return joined(decrypted(*inner, ciphertext, associated, given))

    def encrypt_in_place(
        self, nonce: Buffer, buf: WritableBuffer, associated_data: Buffer | None = None
    ) -> Tag:
        """Does what encrypt does, but overwrites buf with the ciphertext and returns the Tag (RFC 8439 2.8).

        buf is a writable buffer of at most 274,877,906,880 bytes, and must overlap neither nonce nor
        associated_data. Raises what encrypt raises, and ValueError for an overlap; then buf is as it was.

            >>> from chapoly import ChaCha20Poly1305
            >>> buf = bytearray(b"attack at dawn")
            >>> ChaCha20Poly1305(bytes(range(32))).encrypt_in_place(bytes(12), buf, b"from: HQ")
            Tag('ca90a6ad99a264a04a1c4e5b2cd39164')
            >>> buf.hex()
            '79cc3650ce8d86b067413800d82d'
        """
        inner = self._for_chacha20(nonce)
        with view("buf", buf) as memory:
            check_output("buf", memory, len(memory))
            at_most("buf", len(memory), DATA_MAX)
            with view_of_associated(associated_data) as associated:
                check_overlap("buf", memory, nonce=nonce, associated_data=associated)
                return encrypt_to(memory, *inner, memory, associated)

    def decrypt_in_place(
        self, nonce: Buffer, buf: WritableBuffer, tag: Buffer, associated_data: Buffer | None = None
    ) -> None:
        """Verifies the ciphertext in buf, and only then overwrites it with the plaintext (RFC 8439 2.8).

        buf is a writable buffer of at most 274,877,906,880 bytes, and must overlap neither nonce nor tag nor
        associated_data. tag is 16 bytes; any other length does not match. Raises what decrypt raises, and
        ValueError for an overlap. When it raises, buf is as it was, and has been during all of the call.

            >>> from chapoly import ChaCha20Poly1305
            >>> buf = bytearray.fromhex("79cc3650ce8d86b067413800d82d")
            >>> tag = bytes.fromhex("ca90a6ad99a264a04a1c4e5b2cd39164")
            >>> ChaCha20Poly1305(bytes(range(32))).decrypt_in_place(bytes(12), buf, tag, b"from: HQ")
            >>> buf
            bytearray(b'attack at dawn')
        """
        inner = self._for_chacha20(nonce)
        with view("buf", buf) as memory:
            check_output("buf", memory, len(memory))
            at_most("buf", len(memory), DATA_MAX)
            given = octets("tag", tag, TAG_SIZE, InvalidTag)
            with view_of_associated(associated_data) as associated:
                check_overlap("buf", memory, nonce=nonce, tag=tag, associated_data=associated)
                write(decrypted(*inner, memory, associated, given), memory)

    def encryptor(self, nonce: Buffer, associated_data: Buffer | None = None) -> Encryptor:
        """An Encryptor for one message in parts (RFC 8439 2.8).

        nonce is 12 bytes, or 24 for XChaCha20Poly1305, never used with this key before. associated_data comes
        whole, and is not needed after the call. Raises InvalidNonce.

            >>> from chapoly import ChaCha20Poly1305
            >>> encryptor = ChaCha20Poly1305(bytes(range(32))).encryptor(bytes(12), b"from: HQ")
            >>> (encryptor.update(b"attack ") + encryptor.update(b"at dawn")).hex()
            '79cc3650ce8d86b067413800d82d'
            >>> encryptor.finalize()
            Tag('ca90a6ad99a264a04a1c4e5b2cd39164')
        """
        return begin(Encryptor, *self._for_chacha20(nonce), associated_data)

    def unverified_decryptor(
        self, nonce: Buffer, associated_data: Buffer | None = None
    ) -> UnverifiedDecryptor:
        """An UnverifiedDecryptor for one message in parts: plaintext comes out before it is verified.

        nonce and associated_data are those that were given to encrypt. associated_data comes whole, and is
        not needed after the call. Raises InvalidNonce.

            >>> from chapoly import ChaCha20Poly1305
            >>> aead = ChaCha20Poly1305(bytes(range(32)))
            >>> with aead.unverified_decryptor(bytes(12), b"from: HQ") as decryptor:
            ...     plaintext = decryptor.update(bytes.fromhex("79cc3650ce8d86b067413800d82d"))
            ...     decryptor.verify(bytes.fromhex("ca90a6ad99a264a04a1c4e5b2cd39164"))
            >>> plaintext
            b'attack at dawn'
        """
        return begin(UnverifiedDecryptor, *self._for_chacha20(nonce), associated_data)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    __getstate__ = __reduce__


def encrypt_many(
    keys: Sequence[Buffer],
    nonces: Sequence[Buffer],
    datas: Sequence[Buffer],
    associated_datas: Buffer | Sequence[Buffer | None] | None = None,
) -> list[bytes]:
    """Encrypts many messages, each under its own key: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305.encrypt_many does. keys is a sequence with the key of each message, 32
    bytes. Raises InvalidKey too, with the index of the key; then nothing has been encrypted.

        >>> from chapoly import chacha20poly1305
        >>> keys, nonces = [bytes(range(32)), bytes(32)], [bytes(12), bytes(12)]
        >>> packets = chacha20poly1305.encrypt_many(keys, nonces, [b"attack at dawn", b"retreat"])
        >>> packets[1] == chacha20poly1305.encrypt(keys[1], nonces[1], b"retreat")
        True
    """
    return encrypt_each(encrypt, 12, keys, nonces, datas, associated_datas)


def decrypt_many(
    keys: Sequence[Buffer],
    nonces: Sequence[Buffer],
    datas: Sequence[Buffer],
    associated_datas: Buffer | Sequence[Buffer | None] | None = None,
) -> list[bytes | None]:
    """Decrypts many messages, each under its own key: ChaCha20-Poly1305 (RFC 8439 2.8).

    Does what ChaCha20Poly1305.decrypt_many does. keys is a sequence with the key of each message, 32
    bytes. Raises InvalidKey too, with the index of the key; then nothing has been decrypted.

        >>> from chapoly import chacha20poly1305
        >>> keys, nonces = [bytes(range(32)), bytes(32)], [bytes(12), bytes(12)]
        >>> packets = chacha20poly1305.encrypt_many(keys, nonces, [b"attack at dawn", b"retreat"])
        >>> chacha20poly1305.decrypt_many(keys, nonces, [b"forged", packets[1]])
        [None, b'retreat']
    """
    return decrypt_each(decrypt, 12, keys, nonces, datas, associated_datas)


@final
class ChaCha20Poly1305(_Key):
    """A key for ChaCha20-Poly1305, encryption with authentication (RFC 8439 2.8).

    key is 32 bytes, which are copied; generate_key() makes one. Raises InvalidKey. Any number of threads may
    use an object at once.

    Never encrypt twice with the same key and nonce: together, both results give both texts away, and let
    anyone forge others. 12 bytes are too few to choose nonces at random: count them, or take
    XChaCha20Poly1305.

        >>> from chapoly import ChaCha20Poly1305
        >>> aead = ChaCha20Poly1305(ChaCha20Poly1305.generate_key())
        >>> nonce = bytes(12)
        >>> ciphertext = aead.encrypt(nonce, b"attack at dawn", b"from: HQ")
        >>> aead.decrypt(nonce, ciphertext, b"from: HQ")
        b'attack at dawn'
    """

    __slots__ = ()
    __module__ = "chapoly"

    NONCE_SIZE: Final[int] = 12  # type: ignore[misc]
