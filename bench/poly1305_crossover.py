"""From how many blocks on a vector kernel of Poly1305 is faster than the scalar one: sets its CROSSOVER.

python bench/poly1305_crossover.py avx2|avx512 [COMPILER], on a CPU that has it, pinned to one core (taskset).
Prints ns per call of both, the best of many short batches in turn.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

NATIVE = Path(__file__).resolve().parent.parent / "src" / "native"

DRIVER = """
#include <stdio.h>
#include <time.h>
#include "kernel.h"

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_sse2, VECTOR;

static double best[2];

static void batch(int which, const uint8_t *message, size_t blocks)
{
    const uint64_t r[2] = {0x0ffffffc0fffffff, 0x0ffffffc0ffffffc};
    uint64_t h[3] = {0};
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 50; i++)
        (which ? VECTOR : chapoly_poly1305_blocks_sse2)(h, r, message, blocks, 1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 50;
    if (best[which] == 0 || ns < best[which])
        best[which] = ns;
}

int main(void)
{
    static uint8_t message[16 * 4096];
    puts("blocks  scalar  vector");
    for (size_t blocks = 8; blocks <= 4096; blocks += blocks < 64 ? 4 : blocks < 128 ? 8 : blocks) {
        best[0] = best[1] = 0;
        for (int i = 0; i < 2000; i++)
            batch(i % 2, message, blocks);
        printf("%6zu %7.0f %7.0f%s\\n", blocks, best[0], best[1], best[1] < best[0] ? "  vector" : "");
    }
}
"""


def main(kernel: str, compiler: str = "gcc") -> None:
    """Builds both kernels with no crossover and runs them."""
    with tempfile.TemporaryDirectory() as folder:
        driver, program = Path(folder, "driver.c"), Path(folder, "driver")
        driver.write_text(DRIVER, encoding="utf-8")
        sources = [
            NATIVE / f"x86/poly1305_{kernel}.c",
            NATIVE / "x86/poly1305_sse2.c",
            NATIVE / "wipe.c",
        ]
        options = [
            "-std=c11",
            "-O3",
            "-D_GNU_SOURCE",
            "-DCROSSOVER=4",
            f"-DVECTOR=chapoly_poly1305_blocks_{kernel}",
        ]
        options += [f"-I{NATIVE}", "-o", str(program)]
        subprocess.run([compiler, *options, driver, *sources], check=True)
        subprocess.run([program], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
