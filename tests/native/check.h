/*
 * check.h: counted checks, for the programs here that test one kernel after the other.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdarg.h>
#include <stdio.h>

#include "chapoly.h"

static const chapoly_kernel *kernel; /* under test */
static unsigned long passed, failed;

/* Counts a check; a failed one prints the line and what it was about (a printf format and its values). */
#define CHECK(condition, ...) check(condition, __LINE__, __VA_ARGS__)

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static void check(bool right, int line, const char *format, ...)
{
    va_list values;

    if (right) {
        passed++;
        return;
    }
    if (++failed <= 50) {
        printf("FAILED line %d, kernel %s: ", line, kernel == NULL ? "-" : chapoly_kernel_name(kernel));
        va_start(values, format);
        vprintf(format, values);
        va_end(values);
        putchar('\n');
    }
}

static bool all(const uint8_t *p, size_t len, uint8_t value)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != value)
            return false;
    return true;
}

#endif
