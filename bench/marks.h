/*
 * marks.h: the marks between which a program's instructions are counted.
 */
#ifndef MARKS_H
#define MARKS_H

#define MARK(name)                                                                                           \
    void name(void);                                                                                         \
    __attribute__((noinline)) void name(void)                                                                \
    {                                                                                                        \
        __asm__ __volatile__("" : : : "memory");                                                             \
    }
MARK(mark_begin)
MARK(mark_end)

#endif
