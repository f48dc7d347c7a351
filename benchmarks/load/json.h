/* Writing JSON to a stream: commas, quotes and nothing else. Errors stay in the stream. */
#ifndef HAMMER_JSON_H
#define HAMMER_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool need_comma;
};

/* `key` NULL: an element of an array, or the outermost value. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_unsigned(struct json *json, const char *key, uint64_t value);
void json_number(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/* Any bytes from 0x20 to 0x7e; others become "?". */
void json_string(struct json *json, const char *key, const char *value);

#endif
