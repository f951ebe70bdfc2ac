"""What the calls are given: no two in a row get the same nonce, key or buffer."""

import array as arrays
import random
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import chapoly
from chapoly._bench import ASSOCIATED_DATA, KEY, MEMORY, NONCES, memories

PACKETS = 64  # of a batch


class Inputs:
    """Columns of 256 values for messages of one size; of ciphertexts fewer, if 256 would take MEMORY.

    Those that the operations name are the public ones. What is written to is rotated against what is read, so
    that the two start at different offsets.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._text = random.Random(size).randbytes(size)
        self._count = max(2, min(len(NONCES), MEMORY // (size + 1)))

    def rows(self, each: str) -> list[tuple[object, ...]]:
        """What calls are given in turn."""
        return list(zip(*(getattr(self, column) for column in each.split(", ")), strict=False))

    # ---- Keys and nonces. ----

    nonce: ClassVar[list[bytes]] = NONCES
    counter_nonce: ClassVar[list[bytes]] = [bytes(4) + nonce for nonce in NONCES]
    key: ClassVar[list[bytes]] = [bytes((i + j) % 256 for j in range(32)) for i in range(256)]
    xnonce: ClassVar[list[bytes]] = [bytes((i + 7 * j) % 256 for j in range(24)) for i in range(256)]

    # ---- What is encrypted. ----

    @cached_property
    def data(self) -> list[bytes]:
        """Objects apart in memory."""
        different = 4 if self.size < MEMORY else 2
        return [bytes(bytearray(self._text)) for _ in range(different)] * (256 // different)

    @cached_property
    def view(self) -> list[memoryview]:
        """Starting 0, 1 and 32 bytes after a multiple of 64."""
        return (memories([self._text] * 3) * 86)[:256]

    # ---- What is decrypted. ----

    @cached_property
    def sealed(self) -> list[bytes]:
        """Under KEY."""
        encrypt = chapoly.ChaCha20Poly1305(KEY).encrypt
        return [encrypt(nonce, self._text, ASSOCIATED_DATA) for nonce in self.nonce[: self._count]]

    @cached_property
    def xsealed(self) -> list[bytes]:
        """The same with the long nonces."""
        encrypt = chapoly.XChaCha20Poly1305(KEY).encrypt
        return [encrypt(nonce, self._text, ASSOCIATED_DATA) for nonce in self.xnonce[: self._count]]

    @cached_property
    def own_sealed(self) -> list[bytes]:
        """Each under its own key."""
        keys = zip(self.key[: self._count], self.nonce, strict=False)
        return [chapoly.chacha20poly1305.encrypt(k, n, self._text, ASSOCIATED_DATA) for k, n in keys]

    @cached_property
    def sealed_view(self) -> list[memoryview]:
        """As in `view`."""
        return memories(self.sealed)

    @cached_property
    def long_sealed(self) -> list[bytes]:
        """With the nonce behind the tag."""
        return [sealed + nonce for sealed, nonce in zip(self.sealed, self.nonce, strict=False)]

    @cached_property
    def ciphertext(self) -> list[bytes]:
        """For those who want the tag apart."""
        return [sealed[:-16] for sealed in self.sealed]

    @cached_property
    def tag(self) -> list[bytes]:
        """Of `ciphertext`."""
        return [sealed[-16:] for sealed in self.sealed]

    @cached_property
    def xciphertext(self) -> list[bytes]:
        """As `ciphertext`."""
        return [sealed[:-16] for sealed in self.xsealed]

    @cached_property
    def xtag(self) -> list[bytes]:
        """As `tag`."""
        return [sealed[-16:] for sealed in self.xsealed]

    @cached_property
    def mac(self) -> list[bytes]:
        """Poly1305 of `data` under `key`."""
        return [bytes(chapoly.poly1305.mac(key, self._text)) for key in self.key]

    # ---- What is written to. ----

    @cached_property
    def out(self) -> list[memoryview]:
        """For plaintext, or what is as long."""
        return self._outputs(self.size)

    @cached_property
    def sealed_out(self) -> list[memoryview]:
        """For ciphertext and tag."""
        return self._outputs(self.size + 16)

    def _outputs(self, size: int) -> list[memoryview]:
        first, second, third = memories([bytes(size)] * 3)
        return ([second, third, first] * 86)[:256]

    @cached_property
    def array(self) -> list[bytearray]:
        """For plaintext."""
        return self._arrays(self.size)

    @cached_property
    def sealed_array(self) -> list[bytearray]:
        """For ciphertext and tag."""
        return self._arrays(self.size + 16)

    @cached_property
    def long_array(self) -> list[bytearray]:
        """For ciphertext, tag and nonce."""
        return self._arrays(self.size + 28)

    @cached_property
    def xlong_array(self) -> list[bytearray]:
        """The same with the long nonce."""
        return self._arrays(self.size + 40)

    def _arrays(self, size: int) -> list[bytearray]:
        return [bytearray(size) for _ in range(2)] * 128

    # ---- Batches of packets; a row has 64 of them. ----

    nonces: ClassVar[list[list[bytes]]] = [NONCES[i : i + PACKETS] for i in range(0, len(NONCES), PACKETS)]
    packed_nonces: ClassVar[list[bytes]] = [b"".join(batch) for batch in nonces]

    @cached_property
    def datas(self) -> list[list[bytes]]:
        """All of one size."""
        return [self.data[i : i + PACKETS] for i in range(0, len(NONCES), PACKETS)]

    @cached_property
    def packed(self) -> list[bytes]:
        """The same in one buffer."""
        return [b"".join(datas) for datas in self.datas]

    @cached_property
    def offsets(self) -> "list[arrays.array[int]]":
        """Where they start, and where the last one ends."""
        return [arrays.array("q", accumulate(map(len, datas), initial=0)) for datas in self.datas]

    @cached_property
    def packed_out(self) -> list[bytearray]:
        """For their ciphertexts and tags."""
        return [bytearray(len(packed) + 16 * PACKETS) for packed in self.packed]

    @cached_property
    def mixed_datas(self) -> list[list[bytes]]:
        """Of 40 to 1500 bytes: a datagram's worth."""
        sizes = random.Random(8439)
        return [[bytes(sizes.randint(40, 1500)) for _ in range(PACKETS)] for _ in self.nonces]
