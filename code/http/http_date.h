/* http_date.h: dates as HTTP writes them, RFC 9110 section 5.6.7. Free of locale, time zone and
 * shared state. */
#ifndef HTTP_DATE_H
#define HTTP_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define HTTP_DATE_SIZE 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" and its NUL */

/* Writes the date of t into out. Years before 0 and after 9999 are written as the epoch. */
void http_date_format(time_t t, char out[HTTP_DATE_SIZE]);

/* Whether text[0..len) is, to the letter, a date in one of the three formats a server must
 * understand, and a day that the calendar has; if so, *t is the time it says. */
bool http_date_parse(const char *text, size_t len, time_t *t);

#endif
