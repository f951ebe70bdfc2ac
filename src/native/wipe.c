/*
 * Overwriting secrets, in a file of its own so that nothing is inlined into callers.
 */
#include <string.h>

#include "chapoly.h"

void chapoly_wipe(void *secret, size_t len)
{
#if defined(__GNUC__)
    memset(secret, 0, len);
    __asm__ __volatile__("" : : "r"(secret) : "memory"); /* somebody may read it: the stores must happen */
#else
    volatile uint8_t *p = secret;
    while (len-- > 0)
        *p++ = 0;
#endif
}
