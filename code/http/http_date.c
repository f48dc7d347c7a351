#include "http_date.h"

#include <stdio.h>
#include <string.h>

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char weekdays[] = "SunMonTueWedThuFriSat";

static char *two_digits(char *at, int n, char after)
{
    at[0] = (char)('0' + n / 10);
    at[1] = (char)('0' + n % 10);
    at[2] = after;
    return at + 3;
}

/* By hand, because every reply has a date and snprintf takes longer than the rest of its head. */
void http_date_format(time_t t, char out[HTTP_DATE_SIZE])
{
    struct tm tm;
    char *at = out + 5;

    if (gmtime_r(&t, &tm) == NULL || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900)
        gmtime_r(&(time_t){0}, &tm);
    memcpy(out, weekdays + 3 * tm.tm_wday, 3);
    memcpy(out + 3, ", ", 2);
    at = two_digits(at, tm.tm_mday, ' ');
    memcpy(at, months + 3 * tm.tm_mon, 3);
    at[3] = ' ';
    at = two_digits(at + 4, (tm.tm_year + 1900) / 100, ' ') - 1;
    at = two_digits(at, (tm.tm_year + 1900) % 100, ' ');
    at = two_digits(at, tm.tm_hour, ':');
    at = two_digits(at, tm.tm_min, ':');
    at = two_digits(at, tm.tm_sec, ' ');
    memcpy(at, "GMT", 4);
}

/* Days from 1970-01-01 to a date of the Gregorian calendar; the year is taken to begin in March. */
static long days_since_epoch(long year, int month, int day)
{
    if (month <= 2)
        year--;
    long in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return 365 * year + year / 4 - year / 100 + year / 400 + in_year - 719468;
}

static int month_number(const char *name)
{
    for (int i = 0; i < 12; i++)
        if (memcmp(months + 3 * i, name, 3) == 0)
            return i + 1;
    return 0;
}

bool http_date_parse(const char *text, size_t len, time_t *t)
{
    char copy[64], month[4] = "";
    int day, year, hour, minute, second, used = -1;

    if (len >= sizeof copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    /* the format of today, that of RFC 850, that of asctime(3) */
    if (sscanf(copy, "%*[^,], %2d %3s %4d %2d:%2d:%2d GMT%n", &day, month, &year, &hour, &minute,
               &second, &used) != 6 &&
        sscanf(copy, "%*[^,], %2d-%3s-%2d %2d:%2d:%2d GMT%n", &day, month, &year, &hour, &minute,
               &second, &used) != 6 &&
        sscanf(copy, "%*3s %3s %2d %2d:%2d:%2d %4d%n", month, &day, &hour, &minute, &second, &year,
               &used) != 6)
        return false;
    if (used != (int)len || month_number(month) == 0 || day < 1 || day > 31 || year < 0 ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    if (year < 100) /* RFC 850 has two digits */
        year += year < 70 ? 2000 : 1900;
    *t = (time_t)days_since_epoch(year, month_number(month), day) * 86400 + hour * 3600 +
         minute * 60 + second;
    return true;
}
