"""Many messages in one call, per message, against a loop over `cryptography` in the same run.

    python -m pip install . cryptography
    taskset -c 1 python bench/batches.py

For each kernel a batch of 64 messages: of 64 bytes, as lists and packed; of 1420 bytes; and mixed, of 40 to
1500 bytes with 13 bytes of associated data. Then batches of one against single calls. All take turns, each
call with the next nonces and the next place in memory, and of many calls the fastest counts. What they return
is compared first. The musts are those of AVX-512.
"""

import itertools
import mmap
import platform
import random
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import cryptography
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

import chapoly
from chapoly.testing import use_kernel

KEY = bytes(range(32))
COUNT = 64  # messages in a batch
BATCHES = 4  # with nonces and places of their own
ROUNDS = 1500

Call = Callable[[], object]


class Case(NamedTuple):
    """Messages of these sizes, and how many times faster than the loop each must be on AVX-512."""

    name: str
    sizes: Sequence[int]
    associated_data: bytes | None = None
    packed: bool = False
    must: float | None = None


MIXED = random.Random(2026).choices(range(40, 1501), k=COUNT)
CASES = [
    Case("64 B, list to list", [64] * COUNT, must=15),
    Case("64 B, packed", [64] * COUNT, packed=True, must=26),
    Case("1420 B, list to list", [1420] * COUNT, must=4.5),
    Case("1420 B, packed", [1420] * COUNT, packed=True),
    Case("mixed, list to list", MIXED, bytes(13), must=5),
    Case("mixed, packed", MIXED, bytes(13), packed=True),
]
MOST_OF_ONE = 1.3  # a batch of one, in single calls


def fastest(contenders: Sequence[Sequence[Call]], rounds: int = ROUNDS) -> list[float]:
    """The fastest call of each contender, in seconds. They take turns, and each its calls in turn."""
    seconds = [float("inf")] * len(contenders)
    turns = [itertools.cycle(calls) for calls in contenders]
    for _ in range(rounds):
        for i, turn in enumerate(turns):
            call = next(turn)
            start = time.perf_counter()
            call()
            seconds[i] = min(seconds[i], time.perf_counter() - start)
    return seconds


def batches(case: Case) -> list[tuple[list[bytes], list[bytes]]]:
    """The nonces and the messages of each batch."""
    rng = random.Random(case.name)
    numbers = itertools.count()
    return [
        ([next(numbers).to_bytes(12, "little") for _ in case.sizes], [rng.randbytes(n) for n in case.sizes])
        for _ in range(BATCHES)
    ]


def placed(content: bytes, number: int) -> memoryview:
    """In memory that begins 0, 1 or 32 bytes after a page does."""
    start = (0, 1, 32)[number % 3]
    memory = memoryview(mmap.mmap(-1, start + len(content) or 1))[start : start + len(content)]
    memory[:] = content
    return memory


def offsets(messages: Sequence[bytes]) -> "array[int]":
    """Where the messages begin and end that are packed one after the other."""
    return array("q", itertools.accumulate(map(len, messages), initial=0))


# ---- The contenders: calls that encrypt a batch, and calls that decrypt it. ----


def loop(case: Case) -> tuple[list[Call], list[Call]]:
    """A loop over `cryptography`, as one would write it."""
    aead, associated_data = ChaCha20Poly1305(KEY), case.associated_data
    encrypt, decrypt = aead.encrypt, aead.decrypt

    def encrypting(nonces: list[bytes], datas: list[bytes]) -> Call:
        return lambda: [encrypt(n, d, associated_data) for n, d in zip(nonces, datas, strict=True)]

    def decrypting(nonces: list[bytes], datas: list[bytes]) -> Call:
        sealed = [encrypt(n, d, associated_data) for n, d in zip(nonces, datas, strict=True)]
        return lambda: [decrypt(n, d, associated_data) for n, d in zip(nonces, sealed, strict=True)]

    return [encrypting(*batch) for batch in batches(case)], [decrypting(*batch) for batch in batches(case)]


def ours(case: Case) -> tuple[list[Call], list[Call]]:
    """chapoly with the kernel in use."""
    aead, associated_data = chapoly.ChaCha20Poly1305(KEY), case.associated_data

    def as_lists(nonces: list[bytes], datas: list[bytes]) -> tuple[Call, Call]:
        sealed = aead.encrypt_many(nonces, datas, associated_data)
        return (
            lambda: aead.encrypt_many(nonces, datas, associated_data),
            lambda: aead.decrypt_many(nonces, sealed, associated_data),
        )

    def as_packed(number: int, nonces: list[bytes], datas: list[bytes]) -> tuple[Call, Call]:
        sealed = aead.encrypt_many(nonces, datas, associated_data)
        of_nonces = b"".join(nonces)
        plaintexts, ciphertexts = placed(b"".join(datas), number), placed(b"".join(sealed), number + 1)
        of_datas, of_sealed = offsets(datas), offsets(sealed)
        out, back, failed = bytearray(len(ciphertexts)), bytearray(len(plaintexts)), bytearray(len(nonces))
        return (
            lambda: (aead.encrypt_packed(of_nonces, plaintexts, of_datas, out, associated_data), out)[1],
            lambda: (
                aead.decrypt_packed(of_nonces, ciphertexts, of_sealed, back, failed, associated_data),
                back,
            )[1],
        )

    pairs = [
        as_packed(number, *batch) if case.packed else as_lists(*batch)
        for number, batch in enumerate(batches(case))
    ]
    return [encrypt for encrypt, _ in pairs], [decrypt for _, decrypt in pairs]


def joined(result: object) -> bytes:
    """The messages of a result, one after the other."""
    return b"".join(result) if isinstance(result, list) else bytes(result)  # type: ignore[call-overload]


def compare(case: Case, kernels: Sequence[str]) -> None:
    """Prints what each kernel needs per message, and how many times as much the loop does."""
    contenders = [loop(case)]
    for kernel in kernels:
        with use_kernel(kernel):
            contenders.append(ours(case))
    for direction, word in enumerate(("encrypt", "decrypt")):
        calls = [contender[direction] for contender in contenders]
        for same in zip(*calls, strict=True):
            if len({joined(call()) for call in same}) > 1:
                raise SystemExit(f"results differ: {case.name}, {word}")
        theirs, *seconds = (each / len(case.sizes) for each in fastest(calls))
        print(f"\n{word}, {case.name}: cryptography {theirs * 1e9:.0f} ns")
        for kernel, each in zip(kernels, seconds, strict=True):
            must = f"   must {case.must:g} on AVX-512" if case.must and direction == 0 else ""
            print(f"    {kernel:10} {each * 1e9:6.0f} ns  {theirs / each:6.1f} times as fast{must}")


def batches_of_one(kernels: Sequence[str]) -> None:
    """Prints what a batch of one message costs, in single calls."""
    nonces = [number.to_bytes(12, "little") for number in range(256)]
    print(f"\na batch of one, in single calls (must be {MOST_OF_ONE} at most)")
    for kernel in kernels:
        with use_kernel(kernel):
            aead = chapoly.ChaCha20Poly1305(KEY)
        print(f"    {kernel:10}", end="")
        for size in (64, 256, 1420):
            data = bytes(size)
            alone, in_batch = fastest(
                [
                    [all_of(aead.encrypt, [(nonce, data) for nonce in nonces])],
                    [all_of(aead.encrypt_many, [([nonce], [data]) for nonce in nonces])],
                ],
                ROUNDS // 3,
            )
            print(f"  {in_batch / alone:5.2f} at {size} B", end="")
        print()


def all_of(function: Callable[..., object], arguments: Sequence[tuple[object, ...]]) -> Call:
    """Calls the function with each of these arguments; the loop runs in C."""
    return lambda: deque(itertools.starmap(function, arguments), maxlen=0)


def main() -> None:
    """Compares all native kernels that can run here."""
    kernels = [kernel for kernel in chapoly.kernels() if kernel != "pure"]
    print(
        f"chapoly {chapoly.__version__}, cryptography {cryptography.__version__}, "
        f"{platform.python_implementation()} {platform.python_version()}; ns per message, {COUNT} in a batch"
    )
    for case in CASES:
        compare(case, kernels)
    batches_of_one(kernels)


if __name__ == "__main__":
    main()
