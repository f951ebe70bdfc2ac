/*
 * Counts what a process asks of malloc, and of what stands beside it. Preloaded by mallocs.py.
 *
 * glibc's own names lie behind the functions replaced here, so that nothing must be looked up at run time, which
 * would itself allocate.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static atomic_uint_fast64_t requests, bytes;

static void count(size_t size)
{
    atomic_fetch_add_explicit(&requests, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
}

void read_mallocs(uint64_t counts[2])
{
    counts[0] = atomic_load(&requests);
    counts[1] = atomic_load(&bytes);
}

void *malloc(size_t size)
{
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t items, size_t size)
{
    count(items * size);
    return __libc_calloc(items, size);
}

void *realloc(void *old, size_t size)
{
    count(size);
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    count(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *found = memalign(alignment, size);

    if (found == NULL)
        return ENOMEM;
    *result = found;
    return 0;
}
