"""From how many blocks on the AVX2 kernel of Poly1305 is faster than the scalar one: sets its CROSSOVER.

python bench/poly1305_crossover.py [COMPILER], on an x86-64 CPU with AVX2; pin it to one core (taskset -c 1).
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

chapoly_poly1305_blocks_fn chapoly_poly1305_blocks_sse2, chapoly_poly1305_blocks_avx2;

static double best[2];

static void batch(int which, const uint8_t *message, size_t blocks)
{
    const uint64_t r[2] = {0x0ffffffc0fffffff, 0x0ffffffc0ffffffc};
    uint64_t h[3] = {0};
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 50; i++)
        (which ? chapoly_poly1305_blocks_avx2 : chapoly_poly1305_blocks_sse2)(h, r, message, blocks, 1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 50;
    if (best[which] == 0 || ns < best[which])
        best[which] = ns;
}

int main(void)
{
    static uint8_t message[16 * 4096];
    puts("blocks  scalar    avx2");
    for (size_t blocks = 24; blocks <= 4096; blocks += blocks < 128 ? 8 : blocks) {
        best[0] = best[1] = 0;
        for (int i = 0; i < 2000; i++)
            batch(i % 2, message, blocks);
        printf("%6zu %7.0f %7.0f%s\\n", blocks, best[0], best[1], best[1] < best[0] ? "  avx2" : "");
    }
}
"""


def main(compiler: str = "gcc") -> None:
    """Builds both kernels with no crossover and runs them."""
    with tempfile.TemporaryDirectory() as folder:
        driver, program = Path(folder, "driver.c"), Path(folder, "driver")
        driver.write_text(DRIVER, encoding="utf-8")
        sources = [NATIVE / "x86/poly1305_avx2.c", NATIVE / "x86/poly1305_sse2.c", NATIVE / "wipe.c"]
        options = ["-std=c11", "-O3", "-D_GNU_SOURCE", "-DCROSSOVER=4", f"-I{NATIVE}", "-o", str(program)]
        subprocess.run([compiler, *options, driver, *sources], check=True)
        subprocess.run([program], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
