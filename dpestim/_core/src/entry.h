/* What an entry of a ledger asks of the machine: whether a file is still the one that it was. */
#ifndef DPESTIM_ENTRY_H
#define DPESTIM_ENTRY_H

#include <stdint.h>

#ifdef _WIN32
/* There a file has no number that these calls show: whoever asks goes the way that needs none of this. */
static int dpestim_process(void) { return 0; }
static int dpestim_facts(const char *path, uint64_t facts[3]) { (void)path, (void)facts; return 0; }
static int dpestim_is_there(const char *path) { (void)path; return 1; }
#else
#include <sys/stat.h>
#include <unistd.h>

static int dpestim_process(void) { return (int)getpid(); }

/* Find a file's device, number and size; returns whether there is one. */
static int dpestim_facts(const char *path, uint64_t facts[3])
{
    struct stat found;
    if (stat(path, &found))
        return 0;
    facts[0] = (uint64_t)found.st_dev, facts[1] = (uint64_t)found.st_ino, facts[2] = (uint64_t)found.st_size;
    return 1;
}

static int dpestim_is_there(const char *path) { return access(path, F_OK) == 0; }
#endif
#endif
