/*
 * Follows a driver built with -DTRACED one instruction at a time: steps DRIVER ARGUMENT... prints for each call between
 * its marks how many instructions were executed and a hash (FNV-1a, by words) of their addresses in order.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char *what)
{
    perror(what);
    return 2;
}

int main(int argc, char **argv)
{
    struct user_regs_struct registers;
    uint64_t end = 0, count = 0, hash = 0;
    int status;
    const pid_t child = argc > 1 ? fork() : -1;

    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || ptrace(PTRACE_CONT, child, NULL, NULL) != 0)
        return failed("steps");
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        if (WSTOPSIG(status) != 5 || ptrace(PTRACE_GETREGS, child, NULL, &registers) != 0)
            return failed("steps");
        if (end == 0)
            end = registers.rdi, count = 0, hash = UINT64_C(0xcbf29ce484222325);
        else if (registers.rip == end) {
            printf("%llu %016llx\n", (unsigned long long)count, (unsigned long long)hash);
            end = 0;
        }
        count++;
        hash = (hash ^ registers.rip) * UINT64_C(0x100000001b3);
        if (ptrace(end == 0 ? PTRACE_CONT : PTRACE_SINGLESTEP, child, NULL, NULL) != 0)
            return failed("steps");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
