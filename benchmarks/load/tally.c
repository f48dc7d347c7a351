/* Counting; see tally.h. */
#include "tally.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- histogram ---------------------------------------------------------------------------- */

/* Log-linear histogram; the design is described in tally.h. */

size_t histogram_index(uint64_t value)
{
    if (value < HISTOGRAM_SUB)
        return (size_t)value;
    if (value >> HISTOGRAM_MAX_BITS)
        return HISTOGRAM_BUCKETS - 1;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
    return (size_t)(shift * HISTOGRAM_SUB + (value >> shift));
}

uint64_t histogram_lower(size_t index)
{
    if (index < HISTOGRAM_SUB)
        return index;
    size_t shift = index / HISTOGRAM_SUB - 1;
    return (uint64_t)(index - shift * HISTOGRAM_SUB) << shift;
}

void histogram_record(struct histogram *h, uint64_t value)
{
    if (h->count == 0 || value < h->min)
        h->min = value;
    if (value > h->max)
        h->max = value;
    h->count++;
    h->sum += value;
    h->buckets[histogram_index(value)]++;
}

static uint64_t bucket_middle(const struct histogram *h, size_t index)
{
    uint64_t lower = histogram_lower(index);
    /* The last bucket has no upper end: its only honest value is the exact maximum. */
    uint64_t middle =
        index + 1 == HISTOGRAM_BUCKETS ? h->max : lower + (histogram_lower(index + 1) - lower) / 2;
    if (middle < h->min)
        return h->min;
    return middle > h->max ? h->max : middle;
}

uint64_t histogram_quantile(const struct histogram *h, unsigned permille)
{
    if (h->count == 0)
        return 0;
    uint64_t rank = (h->count * permille + 999) / 1000;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= rank && seen > 0)
            return bucket_middle(h, i);
    }
    return h->max;
}

bool histogram_has_quantile(const struct histogram *h, unsigned permille)
{
    if (permille >= 999)
        return h->count >= 10000;
    return h->count > 0 && (permille <= 500 || h->count * (1000 - permille) >= 1000);
}

double histogram_mean(const struct histogram *h)
{
    return h->count ? (double)h->sum / (double)h->count : 0;
}

/* ---- tally -------------------------------------------------------------------------------- */

const char *fetch_error_name(enum fetch_error error)
{
    static const char *const names[FETCH_ERROR_COUNT] = {
        [FETCH_GOOD] = "good",
        [FETCH_CONNECT_REFUSED] = "connect_refused",
        [FETCH_CONNECT_TIMEOUT] = "connect_timeout",
        [FETCH_CONNECT_RESET] = "connect_reset",
        [FETCH_CONNECT_OTHER] = "connect_other",
        [FETCH_NO_ADDRESS] = "no_address",
        [FETCH_NO_RESOURCES] = "no_resources",
        [FETCH_RESET] = "reset",
        [FETCH_TIMEOUT] = "timeout",
        [FETCH_SHORT_REPLY] = "short_reply",
        [FETCH_BAD_HEAD] = "bad_head",
        [FETCH_BAD_BODY] = "bad_body",
        [FETCH_EXCESS] = "excess",
        [FETCH_STATUS] = "status",
        [FETCH_WRONG_LENGTH] = "wrong_length",
    };
    return names[error];
}

uint64_t tally_status_class(const struct tally *tally, unsigned hundreds)
{
    uint64_t n = 0;
    for (unsigned code = hundreds * 100; code < hundreds * 100 + 100; code++)
        n += tally->status[code];
    return n;
}

/* ---- samples ------------------------------------------------------------------------------ */

static void flush(struct samples *s)
{
    size_t done = 0;
    while (done < s->used && !s->error) {
        ssize_t n = write(s->fd, s->buffer + done, s->used - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            s->error = errno;
    }
    s->used = 0;
}

static void put_text(struct samples *s, const char *text, char end)
{
    size_t n = strlen(text);
    memcpy(s->buffer + s->used, text, n);
    s->used += n;
    s->buffer[s->used++] = end;
}

static void put_number(struct samples *s, uint64_t value)
{
    char digits[20]; /* 2^64 has 20 */
    size_t n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n > 0)
        s->buffer[s->used++] = digits[--n];
    s->buffer[s->used++] = '\t';
}

static void put_optional(struct samples *s, uint64_t value)
{
    if (value)
        put_number(s, value);
    else
        put_text(s, "-", '\t');
}

int samples_open(struct samples *s, const char *path)
{
    s->fd = -1;
    s->error = 0;
    s->used = 0;
    if (!path)
        return 0;
    s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (s->fd < 0)
        return -1;
    put_text(s,
             "intended_ns\tstart_ns\tconnect_ns\tfirst_byte_ns\ttotal_ns\tstatus\tbytes\t"
             "connection\turl\terror",
             '\n');
    return 0;
}

void samples_write(struct samples *s, const struct sample *sample)
{
    if (s->fd < 0 || s->error)
        return;
    if (s->used + SAMPLES_MAX_LINE > sizeof s->buffer)
        flush(s);
    put_number(s, sample->intended_ns);
    put_number(s, sample->start_ns);
    put_optional(s, sample->connect_ns);
    put_optional(s, sample->first_byte_ns);
    put_number(s, sample->total_ns);
    put_optional(s, (uint64_t)sample->status);
    put_number(s, sample->bytes);
    put_number(s, sample->connection);
    put_number(s, sample->url);
    put_text(s, sample->error ? fetch_error_name(sample->error) : "-", '\n');
}

int samples_close(struct samples *s)
{
    if (s->fd < 0)
        return 0;
    flush(s);
    if (close(s->fd) < 0 && !s->error)
        s->error = errno;
    s->fd = -1;
    errno = s->error;
    return s->error ? -1 : 0;
}
