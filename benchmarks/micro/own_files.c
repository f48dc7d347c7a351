#include "own_files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "die.h"
#include "own_mount.h"

#define DESCRIPTORS 16 /* that nftw() may have open at once */

static struct own_mount mounted;

static const char *const types[] = {"here", "tmpfs", "ext2", "ext4", "xfs", "btrfs"};

bool files_known(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

bool files_forgettable(const char *type)
{
    return strcmp(type, "here") != 0 && strcmp(type, "tmpfs") != 0;
}

void files_make(const char *type, const char *path, size_t count)
{
    if (mkdir(path, 0700) == -1)
        die_errno("mkdir %s", path);
    mounted = (struct own_mount){.type = type, .path = path, .files = count, .image = -1};
    if (strcmp(type, "here") != 0)
        own_mount(&mounted);
}

void files_forget(void)
{
    own_unmount(&mounted);
    own_mount_again(&mounted);
}

static int remove_one(const char *path, const struct stat *status, int what, struct FTW *walk)
{
    (void)status;
    (void)what;
    (void)walk;
    if (remove(path) == -1)
        die_errno("remove %s", path);
    return 0;
}

void files_remove(void)
{
    if (strcmp(mounted.type, "here") != 0)
        own_unmount(&mounted);
    if (nftw(mounted.path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == -1)
        die_errno("%s", mounted.path);
}
