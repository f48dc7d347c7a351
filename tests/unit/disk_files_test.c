/* Unit tests of the files on the museum disk: names, numbers, places, content. */
#include <stdint.h>
#include <string.h>

#include "../../benchmarks/disk/files.h"
#include "tap.h"

static struct files two_pools(uint64_t fragment)
{
    struct files f = {.directories = 256, .fragment = fragment};
    const char *first = files_add(&f, "small=1000x100K"), *second = files_add(&f, "big=3x5G");
    const char *placed = files_place(&f, 160000000000ull, 0.5);
    tap_ok(!first && !second && !placed && f.total == 1003, "two pools have %llu files",
           (unsigned long long)f.total);
    return f;
}

/* Every inode has a name in its folder, by which it is found again. */
static uint64_t walk(const struct files *f, const struct node *folder, uint64_t *wrong)
{
    char name[MAX_POOL_NAME + 1];
    uint64_t files = 0;
    for (uint64_t i = 0;; i++) {
        struct node entry = node_entry(f, folder, i, name);
        if (entry.kind == NODE_NONE)
            return files;
        struct node again = node_lookup(f, folder, name), same = node_of(f, entry.inode);
        *wrong += again.inode != entry.inode || same.kind != entry.kind ||
                  same.number != entry.number || same.pool != entry.pool;
        files += node_is_directory(&entry) ? walk(f, &entry, wrong) : 1;
    }
}

static void test_names(void)
{
    struct files f = two_pools(0);
    struct node root = node_of(&f, ROOT_INODE);
    uint64_t wrong = 0, found = walk(&f, &root, &wrong);
    tap_ok(found == 1003 && wrong == 0, "%llu are found by name, %llu wrongly",
           (unsigned long long)found, (unsigned long long)wrong);
    struct node pool = node_lookup(&f, &root, "small");
    struct node folder = node_lookup(&f, &pool, "002");
    struct node file = node_lookup(&f, &folder, "000258");
    char path[FILE_PATH_SIZE] = "nothing";
    if (file.kind == NODE_FILE)
        file_path(&f, &file, path);
    tap_ok(strcmp(path, "small/002/000258") == 0, "000258 is %s", path);
    const char *bad[] = {"258", "+00258", "000259", "0000258", "", " 000258", "001002", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        tap_ok(node_lookup(&f, &folder, bad[i]).kind == NODE_NONE, "\"%s\" is not there", bad[i]);
    tap_ok(node_of(&f, 1ull << 60).kind == NODE_NONE, "nor is an inode beyond all");
    struct node last = file_of(&f, 1002);
    tap_ok(strcmp(last.pool->name, "big") == 0 && last.number == 2, "the last of all is of big");
}

static void test_bad_pools(void)
{
    const char *bad[] = {"x", "=1x1", "a=", "a=0x1", "a=1x0", "a=1x", "a=-1x1", "a=1x1T", "a=1xK",
                         "a=1x1KK", ".a=1x1", "a/b=1x1", "a=1y1", "a=1x9999999G",
                         "a=99999999999999999999x1",
                         /* 2^64, and 2^64 and 1 GiB: 0 and 1 GiB in 64 bits */
                         "a=1x17179869184G", "a=1x17179869185G", "a=1x17592186044416M"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct files f = {.directories = 1};
        tap_ok(files_add(&f, bad[i]) != NULL, "\"%s\" is no pool", bad[i]);
    }
    struct files f = {.directories = 1};
    tap_ok(!files_add(&f, "a=1x1") && files_add(&f, "a=2x2"), "no name twice");
    tap_ok(files_place(&f, 1, 0.5) != NULL, "no more than fits");
}

static void test_places(void)
{
    struct files f = two_pools(0);
    uint64_t end = 0, low = 0;
    bool apart = true;
    for (uint64_t i = 0; i < f.total; i++) {
        struct node file = file_of(&f, i);
        struct extent whole = file_extent(&f, &file, 0, node_size(&file));
        apart &= whole.start >= end && whole.length == node_size(&file);
        end = whole.start + whole.length;
    }
    /* Behind the last lies its share of the free space. */
    tap_ok(apart && end <= 80000000000ull && end > 40000000000ull,
           "one behind the other on half of the disk: to %llu", (unsigned long long)end);
    for (uint64_t i = 10; i < 1010; i++)
        low += inode_place(&f, i) < 40000000000ull;
    tap_ok(low > 400 && low < 600, "%llu of 1000 inodes in the lower half",
           (unsigned long long)low);
}

static void test_fragments(void)
{
    struct files f = two_pools(64 * 1024);
    struct node file = file_of(&f, 1001);
    struct extent a = file_extent(&f, &file, 100, 131072), b = file_extent(&f, &file, 65536, 10),
                  c = file_extent(&f, &file, 65546, 10);
    tap_ok(a.length == 65536 - 100 && a.start % 65536 == 100, "a piece ends with its fragment");
    tap_ok(c.start == b.start + 10, "within a fragment all is in order");
    tap_ok(b.start / 65536 != a.start / 65536 + 1, "the next fragment is elsewhere");
    tap_ok(a.start < 80000000000ull && b.start < 80000000000ull, "within the used part");
}

static void test_content(void)
{
    struct files f = two_pools(0);
    struct node file = file_of(&f, 1000), other = file_of(&f, 1001);
    unsigned char whole[64], part[64];
    uint64_t far = 4300000000ull;
    bool same = true;
    file_content(&f, &file, far, whole, sizeof whole);
    for (size_t i = 0; i < 20; i++) {
        file_content(&f, &file, far + i, part, 40 - i);
        same &= memcmp(part, whole + i, 40 - i) == 0;
    }
    tap_ok(same, "any part of it is the same as that part of the whole");
    file_content(&f, &other, far, part, sizeof part);
    tap_ok(memcmp(part, whole, sizeof whole) != 0, "another file is different");
    file_content(&f, &file, far - (1ull << 32), part, sizeof part);
    tap_ok(memcmp(part, whole, sizeof whole) != 0, "4 GiB before it is different");
}

int main(void)
{
    test_names();
    test_bad_pools();
    test_places();
    test_fragments();
    test_content();
    return tap_done();
}
