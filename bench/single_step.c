/*
 * Counts the instructions that a program executes between two functions, exactly, on any CPU that can run it:
 * single_step BEGIN END PROGRAM ARGUMENT... with the addresses of both in hexadecimal. Prints a line for each time that
 * END is reached after BEGIN. The program must be static and not position independent.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const unsigned long begin = argc > 3 ? strtoul(argv[1], NULL, 16) : 0;
    const unsigned long end = argc > 3 ? strtoul(argv[2], NULL, 16) : 0;
    unsigned long count = 0, at;
    int status, inside = 0;
    const pid_t child = argc > 3 ? fork() : -1;

    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(argv[3], argv + 3);
        _exit(127);
    }
    if (child < 0)
        return 2;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        at = (unsigned long)ptrace(PTRACE_PEEKUSER, child, (void *)offsetof(struct user_regs_struct, rip), NULL);
        if (inside && at == end) {
            printf("%lu\n", count);
            inside = 0;
        }
        if (at == begin)
            inside = 1, count = 0;
        count++;
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0) {
            perror("single_step");
            return 2;
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 2;
}
