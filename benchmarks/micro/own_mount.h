/* own_mount.h: file systems that only this process sees. */
#ifndef OWN_MOUNT_H
#define OWN_MOUNT_H

#include <stddef.h>

struct own_mount {
    const char *type; /* "tmpfs", or what mkfs.TYPE makes and mount(2) knows */
    const char *path; /* the folder it covers */
    size_t files;     /* that it has to have room for */
    int image;        /* the file it is in, or -1 */
};

/* Makes the file system and mounts it. Dies with EXIT_UNSUPPORTED where that cannot be had. */
void own_mount(struct own_mount *mount);

/* Once it is unmounted, what was in an image can be mounted again. Nothing is cached then. */
void own_unmount(const struct own_mount *mount);
void own_mount_again(const struct own_mount *mount);

#endif
