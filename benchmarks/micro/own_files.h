/*
 * own_files.h: a folder for an experiment, on a file system of its choice, and a way to make the
 * kernel forget what it knows of it.
 */
#ifndef OWN_FILES_H
#define OWN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#define OWN_FILES "here|tmpfs|ext2|ext4|xfs|btrfs" /* for usage lines */

bool files_known(const char *type);

/*
 * Makes the new folder `path`, for `count` files. On "here" it is a folder as any. Else a new file
 * system is mounted there: "tmpfs", or one of the others, over a loop device, in a file beside the
 * folder that loses its name at once; "ext2" is made without dir_index. Only this process sees the
 * mount, which ends with it, however it ends. Root can have all of them, and tmpfs a user where
 * user namespaces are allowed; without, and without mkfs.TYPE, it dies with EXIT_UNSUPPORTED. A
 * process that exits without files_remove() leaves nothing; one that a signal ends leaves the
 * folder, and what was in it "here".
 */
void files_make(const char *type, const char *path, size_t count);

/* Whether files_forget() can do something with files of this type. */
bool files_forgettable(const char *type);

/*
 * Takes a file system that is in a file off and mounts it again: no name, inode or page of it is
 * in any cache. Whatever was open there must have been closed.
 */
void files_forget(void);

/* Removes the folder with all that is in it. Dies if it cannot. */
void files_remove(void);

#endif
