"""make demo: encrypts a real file with the chosen kernel, decrypts it with another library, and compares.

The file is an archive of the running interpreter's own standard library, tens of megabytes of code and data.
The other library is cryptography (OpenSSL); the pure implementation then decrypts a part of it, too.
"""

import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305 as OpenSSL
from rich.console import Console
from rich.table import Table

import chapoly
from chapoly.testing import use_kernel

MB = 1_000_000
PURE_PART = 2 * MB
LIMIT = 64 * MB  # enough to see the speed, and it is held in memory a few times


def real_file(folder: Path) -> Path:
    """An archive of the standard library."""
    archive = folder / "stdlib.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(
            sysconfig.get_path("stdlib"),
            arcname="stdlib",
            filter=lambda member: None if "-packages" in member.name else member,  # what was installed later
        )
    return archive


def seconds(work: Callable[..., object], *arguments: bytes) -> float:
    """How long a call takes, the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Runs the demonstration; an exception means that something is wrong."""
    console = Console()
    key, nonce = chapoly.ChaCha20Poly1305.generate_key(), (1).to_bytes(12, "little")

    with tempfile.TemporaryDirectory() as folder:
        plain = real_file(Path(folder))
        data = plain.read_bytes()[:LIMIT]
        sealed = Path(folder, "stdlib.tar.chapoly")
        sealed.write_bytes(chapoly.ChaCha20Poly1305(key).encrypt(nonce, data, b"stdlib.tar"))
        console.print(
            f"chapoly {chapoly.__version__}, kernel [bold]{chapoly.kernel}[/] ({chapoly.backend}): encrypted "
            f"{len(data) / MB:.0f} MB of {plain.name}, the standard library of this Python"
        )

        if OpenSSL(key).decrypt(nonce, sealed.read_bytes(), b"stdlib.tar") != data:
            raise SystemExit("OpenSSL decrypted something else")
        console.print("decrypted by OpenSSL (through cryptography): equal to the original")

    with use_kernel("pure"):
        part = data[:PURE_PART]
        if chapoly.ChaCha20Poly1305(key).decrypt(nonce, OpenSSL(key).encrypt(nonce, part, None)) != part:
            raise SystemExit("pure decrypted something else")
        console.print(
            f"{PURE_PART / MB:.0f} MB sealed by OpenSSL, decrypted by the pure implementation: equal\n"
        )

    table = Table("kernel", "encrypt", "decrypt", "gain over portable", title="Speed on this machine")
    speeds: dict[str, list[float]] = {}
    for name in chapoly.kernels():
        with use_kernel(name):
            aead = chapoly.ChaCha20Poly1305(key)
            sample = data[:PURE_PART] if name == "pure" else data
            box = aead.encrypt(nonce, sample)
            speeds[name] = [
                len(sample) / MB / seconds(aead.encrypt, nonce, sample),
                len(sample) / MB / seconds(aead.decrypt, nonce, box),
            ]
    for name, (encrypt, decrypt) in speeds.items():
        gain = f"{encrypt / speeds['portable'][0]:.3g} x" if "portable" in speeds else ""
        table.add_row(name, f"{encrypt:,.0f} MB/s", f"{decrypt:,.0f} MB/s", gain)
    console.print(table)
    if chapoly.kernel == "portable":
        console.print("There is no SIMD kernel for this CPU, so there is no gain to show over portable C.")


if __name__ == "__main__":
    main()
