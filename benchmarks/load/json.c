/* JSON writer; see json.h. */
#include "json.h"

#include <inttypes.h>
#include <math.h>

static void begin(struct json *j, const char *key)
{
    if (j->need_comma)
        fputs(", ", j->out);
    if (key)
        fprintf(j->out, "\"%s\": ", key);
    j->need_comma = true;
}

void json_open(struct json *j, const char *key, char bracket)
{
    begin(j, key);
    putc(bracket, j->out);
    j->need_comma = false;
}

void json_close(struct json *j, char bracket)
{
    putc(bracket, j->out);
    j->need_comma = true;
}

void json_unsigned(struct json *j, const char *key, uint64_t value)
{
    begin(j, key);
    fprintf(j->out, "%" PRIu64, value);
}

void json_number(struct json *j, const char *key, double value)
{
    if (!isfinite(value)) {
        json_null(j, key); /* JSON has no infinity */
        return;
    }
    begin(j, key);
    fprintf(j->out, "%.9g", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
    begin(j, key);
    fputs("null", j->out);
}

void json_string(struct json *j, const char *key, const char *value)
{
    begin(j, key);
    putc('"', j->out);
    for (const char *p = value; *p; p++) {
        if (*p == '"' || *p == '\\')
            putc('\\', j->out);
        putc(*p >= ' ' && *p < 0x7f ? *p : '?', j->out);
    }
    putc('"', j->out);
}
