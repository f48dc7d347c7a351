/*
 * The files on the museum disk. They are made up: a pool is COUNT files of SIZE bytes, and where
 * a file lies, and what is in it, is computed from its number. So 100 000 files, or one of a
 * terabyte, take no room at all.
 *
 *   MOUNT/NAME/DDD/NNNNNN      file N of the pool NAME, in directory N % directories
 *
 * Files lie in the order of their numbers, pool after pool, evenly over the used part of the
 * platter, with the free space between them. With fragments each piece of so many bytes lies
 * at a place drawn for it alone. So does each inode: this is an old file system, in which they
 * are far from the data.
 */
#ifndef DISK_FILES_H
#define DISK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_POOLS = 16, MAX_POOL_NAME = 63, FILE_PATH_SIZE = 128 };

/* The modification time of everything: 2 February 2007, the day of lighttpd's measurement. */
#define FILES_MTIME 1170374400

/* Inodes of what is no part of a pool. */
enum { ROOT_INODE = 1, STATISTICS_INODE, PHASE_INODE, FIRST_POOL_INODE };

struct pool {
    char name[MAX_POOL_NAME + 1];
    uint64_t count, size;
    uint64_t inode;  /* of its directory; then come its directories, then its files */
    uint64_t stride; /* bytes of platter for each file */
    uint64_t start;  /* of its part of the platter */
};

struct files {
    struct pool pools[MAX_POOLS];
    size_t pool_count;
    uint64_t directories; /* of each pool that has so many files */
    uint64_t fragment;    /* bytes; 0: each file is in one piece */
    uint64_t used;        /* bytes of platter, from its beginning, on which the files lie */
    uint64_t total;       /* files of all pools */
};

enum node_kind {
    NODE_NONE,
    NODE_ROOT,
    NODE_STATISTICS,
    NODE_PHASE,
    NODE_POOL,
    NODE_DIRECTORY,
    NODE_FILE
};

struct node {
    enum node_kind kind;
    uint64_t inode;
    const struct pool *pool; /* of a pool, a directory of it, a file in it */
    uint64_t number;         /* of a directory or a file */
};

/* Adds the pool that "NAME=COUNTxSIZE" says; NULL, or what is wrong. SIZE may end in K, M or G. */
const char *files_add(struct files *files, const char *text);

/* When all pools are there: gives out inodes and places. NULL, or what is wrong. */
const char *files_place(struct files *files, uint64_t capacity, double used_share);

struct node node_of(const struct files *files, uint64_t inode);

/* The entry `name` of a directory; NODE_NONE if there is none. */
struct node node_lookup(const struct files *files, const struct node *parent, const char *name);

/* Entry `index` of a directory; NODE_NONE behind the last. The name goes to name[]. */
struct node node_entry(const struct files *files, const struct node *parent, uint64_t index,
                       char name[MAX_POOL_NAME + 1]);

bool node_is_directory(const struct node *node);
uint64_t node_size(const struct node *node);

/* The path of a file below the mount. */
void file_path(const struct files *files, const struct node *file, char path[FILE_PATH_SIZE]);

/* File `number` of all, 0 to total - 1, pool after pool. */
struct node file_of(const struct files *files, uint64_t number);

/* Where an inode is read from the platter: so many bytes of it. */
enum { INODE_BYTES = 4096 };
uint64_t inode_place(const struct files *files, uint64_t inode);

/*
 * Where byte `offset` of a file lies, and how many follow it there in one piece, up to `length`.
 */
struct extent {
    uint64_t start, length;
};
struct extent file_extent(const struct files *files, const struct node *file, uint64_t offset,
                          uint64_t length);

/*
 * Bytes of a file: 64-bit words, little-endian, word i the i-th output of splitmix64 that began
 * with the FNV-1a hash of the path. So a test can tell any byte from name and offset.
 */
void file_content(const struct files *files, const struct node *file, uint64_t offset, void *bytes,
                  size_t length);

#endif
