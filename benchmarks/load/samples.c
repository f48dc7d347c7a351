/* Raw samples; see samples.h. A line costs well below a microsecond: no printf. */
#include "samples.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
