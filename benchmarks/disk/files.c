/* The files on the museum disk; see files.h. */
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1ull << 50) /* of a file */
#define GOLDEN     0x9e3779b97f4a7c15ull

/* The finisher of splitmix64: every bit of the result depends on every bit of x. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* ---- pools ---- */

static bool parse_count(const char **text, uint64_t *value)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *value = strtoull(*text, &end, 10);
    *text = end;
    return *value > 0 && *value <= MOST_BYTES;
}

static bool parse_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMG";
    if (!parse_count(&text, size))
        return false;
    const char *unit = *text ? strchr(units, *text) : NULL;
    if (unit) {
        int shift = 10 * (int)(unit - units + 1);
        if (*size > MOST_BYTES >> shift) /* shifted, it would lose its upper bits, and be small */
            return false;
        *size <<= shift;
        text++;
    }
    return *text == '\0';
}

const char *files_add(struct files *f, const char *text)
{
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (length == 0)
        return "a pool is NAME=COUNTxSIZE, as files=100000x102400";
    if (length > MAX_POOL_NAME || text[0] == '.' || memchr(text, '/', length))
        return "the name of a pool has at most 63 characters, no '/', and no '.' at its beginning";
    if (f->pool_count == MAX_POOLS)
        return "there are at most 16 pools";
    struct pool *p = &f->pools[f->pool_count];
    *p = (struct pool){.count = 0};
    memcpy(p->name, text, length);
    for (size_t i = 0; i < f->pool_count; i++)
        if (strcmp(f->pools[i].name, p->name) == 0)
            return "this pool is there twice";
    text = equals + 1;
    if (!parse_count(&text, &p->count) || p->count > 100000000 || *text != 'x')
        return "a pool is NAME=COUNTxSIZE, and has from 1 to 100000000 files";
    if (!parse_size(text + 1, &p->size))
        return "the SIZE of a file is a number from 1, or one with K, M or G, up to 1 PiB";
    f->pool_count++;
    return NULL;
}

static uint64_t directories_of(const struct files *f, const struct pool *p)
{
    return p->count < f->directories ? p->count : f->directories;
}

const char *files_place(struct files *f, uint64_t capacity, double used_share)
{
    double bytes = 0;
    uint64_t inode = FIRST_POOL_INODE, start = 0;
    f->used = (uint64_t)((double)capacity * used_share);
    for (size_t i = 0; i < f->pool_count; i++)
        bytes += (double)f->pools[i].count * (double)f->pools[i].size;
    if (bytes > (double)f->used)
        return "the pools are larger than the part of the disk that they may use";
    f->total = 0;
    for (size_t i = 0; i < f->pool_count; i++) {
        struct pool *p = &f->pools[i];
        p->inode = inode;
        inode += 1 + directories_of(f, p) + p->count;
        p->start = start;
        p->stride = (uint64_t)((double)p->size * ((double)f->used / bytes));
        start += p->stride * p->count;
        f->total += p->count;
    }
    return NULL;
}

/* ---- nodes ---- */

struct node node_of(const struct files *f, uint64_t inode)
{
    struct node node = {.inode = inode};
    if (inode < FIRST_POOL_INODE) {
        static const enum node_kind kinds[] = {NODE_NONE, NODE_ROOT, NODE_STATISTICS, NODE_PHASE};
        node.kind = kinds[inode];
        return node;
    }
    for (size_t i = 0; i < f->pool_count; i++) {
        const struct pool *p = &f->pools[i];
        uint64_t directories = directories_of(f, p), behind = inode - p->inode;
        if (behind > directories + p->count)
            continue;
        node.pool = p;
        node.kind = behind == 0 ? NODE_POOL : behind <= directories ? NODE_DIRECTORY : NODE_FILE;
        node.number = node.kind == NODE_FILE ? behind - 1 - directories : behind - 1;
        return node;
    }
    return node;
}

static struct node file_node(const struct files *f, const struct pool *p, uint64_t number)
{
    return node_of(f, p->inode + 1 + directories_of(f, p) + number);
}

struct node file_of(const struct files *f, uint64_t number)
{
    const struct pool *p = f->pools;
    for (; number >= p->count; p++)
        number -= p->count;
    return file_node(f, p, number);
}

/* The root: the pools alone. What is no pool, and whose name begins with a dot, is not listed. */
static struct node root_entry(const struct files *f, uint64_t index, char *name)
{
    if (index >= f->pool_count)
        return (struct node){.kind = NODE_NONE};
    snprintf(name, MAX_POOL_NAME + 1, "%s", f->pools[index].name);
    return node_of(f, f->pools[index].inode);
}

struct node node_entry(const struct files *f, const struct node *parent, uint64_t index,
                       char name[MAX_POOL_NAME + 1])
{
    const struct pool *p = parent->pool;
    if (parent->kind == NODE_ROOT)
        return root_entry(f, index, name);
    if (parent->kind == NODE_POOL && index < directories_of(f, p)) {
        snprintf(name, MAX_POOL_NAME + 1, "%03" PRIu64, index);
        return node_of(f, p->inode + 1 + index);
    }
    uint64_t number = parent->number + index * (p ? directories_of(f, p) : 1);
    if (parent->kind != NODE_DIRECTORY || number >= p->count)
        return (struct node){.kind = NODE_NONE};
    snprintf(name, MAX_POOL_NAME + 1, "%06" PRIu64, number);
    return file_node(f, p, number);
}

static struct node root_lookup(const struct files *f, const char *name)
{
    if (strcmp(name, ".statistics") == 0)
        return node_of(f, STATISTICS_INODE);
    if (strcmp(name, ".phase") == 0)
        return node_of(f, PHASE_INODE);
    for (size_t i = 0; i < f->pool_count; i++)
        if (strcmp(f->pools[i].name, name) == 0)
            return node_of(f, f->pools[i].inode);
    return (struct node){.kind = NODE_NONE};
}

struct node node_lookup(const struct files *f, const struct node *parent, const char *name)
{
    char real[MAX_POOL_NAME + 1];
    struct node none = {.kind = NODE_NONE};
    if (parent->kind == NODE_ROOT)
        return root_lookup(f, name);
    if (parent->kind != NODE_POOL && parent->kind != NODE_DIRECTORY)
        return none;
    char *end;
    uint64_t number = strtoull(name, &end, 10), directories = directories_of(f, parent->pool);
    if (*end != '\0' || (parent->kind == NODE_DIRECTORY && number % directories != parent->number))
        return none;
    uint64_t index = parent->kind == NODE_POOL ? number : number / directories;
    struct node found = node_entry(f, parent, index, real);
    /* "7" and "+7" are not "007". */
    return found.kind != NODE_NONE && strcmp(real, name) == 0 ? found : none;
}

bool node_is_directory(const struct node *node)
{
    return node->kind == NODE_ROOT || node->kind == NODE_POOL || node->kind == NODE_DIRECTORY;
}

uint64_t node_size(const struct node *node)
{
    return node->kind == NODE_FILE ? node->pool->size : 0;
}

void file_path(const struct files *f, const struct node *file, char path[FILE_PATH_SIZE])
{
    snprintf(path, FILE_PATH_SIZE, "%s/%03" PRIu64 "/%06" PRIu64, file->pool->name,
             file->number % directories_of(f, file->pool), file->number);
}

/* ---- the platter ---- */

/* A drawn place for `length` bytes in the used part. */
static uint64_t drawn_place(const struct files *f, uint64_t key, uint64_t length)
{
    uint64_t places = f->used / length;
    return places == 0 ? 0 : mix(key * GOLDEN) % places * length;
}

uint64_t inode_place(const struct files *f, uint64_t inode)
{
    return drawn_place(f, ~inode, INODE_BYTES);
}

struct extent file_extent(const struct files *f, const struct node *file, uint64_t offset,
                          uint64_t length)
{
    const struct pool *p = file->pool;
    if (f->fragment == 0)
        return (struct extent){p->start + file->number * p->stride + offset, length};
    uint64_t piece = offset / f->fragment, within = offset % f->fragment;
    if (length > f->fragment - within)
        length = f->fragment - within;
    uint64_t place = drawn_place(f, mix(file->inode * GOLDEN) + piece, f->fragment);
    return (struct extent){place + within, length};
}

/* ---- the content ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    return hash;
}

void file_content(const struct files *f, const struct node *file, uint64_t offset, void *bytes,
                  size_t length)
{
    char path[FILE_PATH_SIZE];
    unsigned char *out = bytes, *end = out + length;
    file_path(f, file, path);
    uint64_t hash = hash_of(path), word = offset / 8;
    for (size_t skip = offset % 8; out < end; skip = 0, word++) {
        uint64_t value = mix(hash + (word + 1) * GOLDEN);
        unsigned char little[8];
        for (int i = 0; i < 8; i++)
            little[i] = (unsigned char)(value >> (8 * i)); /* one store, for a compiler */
        size_t n = 8 - skip < (size_t)(end - out) ? 8 - skip : (size_t)(end - out);
        memcpy(out, little + skip, n);
        out += n;
    }
}
