/*
 * Feeds the request parser whatever libFuzzer thinks of, and checks what must hold for every input:
 * a head is found where it ends and not before, an error stays one, and no path leaves the docroot.
 *
 * Needs clang. Run: make fuzz FUZZ_SECONDS=60
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http_parse.h"
#include "reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* Nothing shorter than the head may be taken for one, or the rest of it would be the next request. */
static void check_prefixes(const char *buf, int head)
{
    struct request req;

    for (int len = 0; len < head; len++)
        require(http_parse(buf, (size_t)len, &req) <= 0, "a prefix of a head was taken for a head");
}

static void check_path(const struct request *req)
{
    char path[REPLY_PATH_MAX];
    int status = reply_path(req, path);

    require(status == 0 || status >= 400, "reply_path() gave neither a path nor an error");
    if (status != 0)
        return;
    require(path[0] != '/' && path[0] != '\0', "a path is not relative");
    require(strstr(path, "//") == NULL, "a path has an empty segment");
    for (char *part = strtok(path, "/"); part != NULL; part = strtok(NULL, "/"))
        require(strcmp(part, "..") != 0 && strcmp(part, ".") != 0, "a path has dots to resolve");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct request req;
    size_t len = size < HTTP_HEAD_MAX ? size : HTTP_HEAD_MAX;
    char *buf = malloc(len); /* of the exact size: the sanitizer sees a step beyond it */

    require(buf != NULL || len == 0, "malloc");
    if (len > 0)
        memcpy(buf, data, len);
    int used = http_parse(buf, len, &req);
    require(used <= (int)len, "more was used up than was there");
    require(used != 0 || len < HTTP_HEAD_MAX, "a full buffer is still not enough");
    require(used > 0 || !req.keep_alive, "the connection would go on after a refusal");
    if (used > 0) {
        require(req.minor == 0 || req.minor == 1, "a version that is neither 1.0 nor 1.1");
        require(!(req.keep_alive && req.has_body), "a body would be read as the next request");
        check_prefixes(buf, used);
        check_path(&req);
    }
    free(buf);
    return 0;
}
