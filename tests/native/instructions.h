/*
 * instructions.h: one function for each instruction that the AVX-512 kernels use (and each immediate operand), over
 * operands in memory; instructions.c has them all, once emulated and once real.
 */
#ifndef INSTRUCTIONS_H
#define INSTRUCTIONS_H

#include <stdint.h>

struct operands {
    uint64_t x[8], y[8], z[8]; /* of 256-bit instructions, the first half */
    uint64_t mask, word;
};

struct instruction {
    const char *name;
    void (*run)(uint64_t out[8], const struct operands *); /* out comes filled, and what is not written must stay */
};

enum { INSTRUCTIONS = 72 };
extern const struct instruction emulated_instructions[INSTRUCTIONS], real_instructions[INSTRUCTIONS];

#endif
