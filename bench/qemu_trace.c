/*
 * A plugin for qemu-user that writes what the guest executes: for each run of straight-line code the address of its
 * first instruction and how many there are, as two 64-bit words. qemu-aarch64 -plugin ./qemu_trace.so,to=FILE PROGRAM
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What this needs of qemu-plugin.h (interface version 1; QEMU 7.2), so that QEMU's sources need not be fetched. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);

int qemu_plugin_version = 1;
int qemu_plugin_install(qemu_plugin_id_t, const void *info, int argc, char **argv);

static FILE *trace;

static void executed(unsigned cpu, void *code)
{
    const uint64_t record[2] = {(uintptr_t)code >> 16, (uintptr_t)code & 0xffff};

    (void)cpu;
    fwrite(record, sizeof record, 1, trace);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    const uint64_t code = qemu_plugin_tb_vaddr(tb) << 16 | qemu_plugin_tb_n_insns(tb);

    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, (void *)(uintptr_t)code);
}

static void ended(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    fclose(trace);
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    if (argc != 1 || strncmp(argv[0], "to=", 3) != 0 || (trace = fopen(argv[0] + 3, "wb")) == NULL)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
