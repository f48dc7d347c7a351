/* Unit tests of the response head parser and of the reply, whole and in every two pieces. */
#include "reply.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static ssize_t parse(struct response *r, const char *text)
{
    return response_parse(r, text, strlen(text));
}

static void test_head(void)
{
    static const char head[] = "HTTP/1.1 206 Partial Content\r\nContent-Length:  42 \r\n"
                               "CONNECTION: foo , Close\r\n\r\n";
    struct response r;

    OK(parse(&r, head) == (ssize_t)strlen(head));
    OK(r.status == 206 && r.content_length == 42 && !r.chunked && !r.persistent);
    OK(parse(&r, "HTTP/1.0 200 OK\r\n\r\n") > 0 && !r.persistent && r.content_length == -1);
    OK(parse(&r, "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n") > 0 && r.persistent);
    OK(parse(&r, "HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n") > 0 && r.chunked);
    OK(parse(&r, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n") > 0);
}

static void test_head_is_incremental(void)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra";
    size_t whole = strlen(head) - 5;
    struct response r;
    bool waits = true;

    for (size_t n = 0; n < whole; n++)
        waits = waits && response_parse(&r, head, n) == 0;
    OK(waits);
    OK(response_parse(&r, head, whole) == (ssize_t)whole);
    OK(response_parse(&r, head, strlen(head)) == (ssize_t)whole);
}

static void test_bad_heads(void)
{
    static const char *const bad[] = {
        "\r\n",
        "HTTP/2 200 OK\r\n",
        "HTTP/1.2 200 OK\r\n",
        "HTTP/1.1 20 OK\r\n",
        "HTTP/1.1 2000 OK\r\n",
        "HTTP/1.1 099 Low\r\n",
        "HTTP/1.1 600 High\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1 200 OK\n",
        "HTTP/1.1 200 OK\r\nNo colon\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n",
        "HTTP/1.1 200 OK\r\nName : space\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    };
    struct response r;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        tap_ok(parse(&r, bad[i]) == -1, "a bad head is refused", __FILE__, (int)i);
}

/* Feeds `text` cut at `cut`, from memory of exactly that size so that the sanitizer watches. */
static enum reply_result feed_cut(struct reply *reply, const char *text, size_t cut)
{
    size_t sizes[2] = {cut, strlen(text) - cut};
    enum reply_result result = REPLY_MORE;

    reply_begin(reply, false);
    for (int i = 0; i < 2 && result == REPLY_MORE; i++) {
        if (sizes[i] == 0)
            continue;
        char *piece = malloc(sizes[i]);
        if (!piece)
            abort();
        memcpy(piece, text + (i ? cut : 0), sizes[i]);
        result = reply_feed(reply, piece, sizes[i]);
        free(piece);
    }
    return result;
}

/* However the bytes are cut, the result is the same. */
static void expect_at(int line, const char *text, enum reply_result result, uint64_t body)
{
    struct reply reply = {0};
    bool same = true;

    for (size_t cut = 0; cut < strlen(text); cut++) {
        same = same && feed_cut(&reply, text, cut) == result;
        if (result == REPLY_COMPLETE)
            same = same && reply.body.bytes == body && reply.received == strlen(text);
    }
    reply_free(&reply);
    tap_ok(same, "the same however it is cut", __FILE__, line);
}

#define EXPECT(text, result, body) expect_at(__LINE__, text, result, body)

static void test_replies(void)
{
    EXPECT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", REPLY_COMPLETE, 5);
    EXPECT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", REPLY_COMPLETE, 0);
    EXPECT("HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", REPLY_COMPLETE, 0);
    EXPECT("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
           REPLY_COMPLETE, 1);
    EXPECT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           "a;ext=1\r\n0123456789\r\n2 \r\nab\r\n0\r\nT: x\r\n\r\n",
           REPLY_COMPLETE, 12);
    EXPECT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", REPLY_MORE, 0);
    EXPECT("HTTP/1.1 200 OK\r\n\r\nuntil the end", REPLY_MORE, 0);
    EXPECT("HTTP/1.1 101 Switch\r\n\r\n", REPLY_BAD_HEAD, 0);
}

static void test_bad_bodies(void)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char *const bad[] = {
        "\r\n", "g\r\n", "-1\r\n", "5\r\nhelloX", "5\nhello", "fffffffffffffffff\r\n", "0\r\n\rX"};
    char text[256];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "%s%s", head, bad[i]);
        EXPECT(text, REPLY_BAD_BODY, 0);
    }
}

static void test_end_of_stream(void)
{
    struct reply reply = {0};

    OK(feed_cut(&reply, "HTTP/1.1 200 OK\r\n\r\nall", 3) == REPLY_MORE);
    OK(reply_end(&reply) == REPLY_COMPLETE && reply.body.bytes == 3);
    OK(feed_cut(&reply, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nall", 3) == REPLY_MORE);
    OK(reply_end(&reply) == REPLY_SHORT);
    OK(feed_cut(&reply, "HTTP/1.1 200 OK\r\n", 3) == REPLY_MORE);
    OK(reply_end(&reply) == REPLY_SHORT);
    OK(feed_cut(&reply, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy", 0) == REPLY_EXCESS);
    reply_free(&reply);
}

/* The limit is the same for a head in one piece and a head in many. */
static void test_head_limit(void)
{
    static char text[REPLY_MAX_HEAD + 64];
    static const char start[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
    static const char end[] = "\r\n\r\n";
    struct reply reply = {0};

    for (size_t over = 0; over < 2; over++) {
        size_t fill = REPLY_MAX_HEAD + over - (sizeof start - 1) - (sizeof end - 1);
        int n = snprintf(text, sizeof text, "%s", start);
        memset(text + n, 'x', fill);
        strcpy(text + (size_t)n + fill, end);
        enum reply_result expected = over ? REPLY_BAD_HEAD : REPLY_COMPLETE;
        OK(feed_cut(&reply, text, 0) == expected);
        OK(feed_cut(&reply, text, 100) == expected);
        OK(feed_cut(&reply, text, strlen(text) - 1) == expected);
    }
    reply_free(&reply);
}

int main(void)
{
    test_head();
    test_head_is_incremental();
    test_bad_heads();
    test_replies();
    test_bad_bodies();
    test_end_of_stream();
    test_head_limit();
    return tap_end();
}
