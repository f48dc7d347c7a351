#include "http_date.h"

#include <stdio.h>
#include <string.h>

#define DAY_SECONDS 86400
#define FIRST_TIME  -62167219200LL /* 0000-01-01 00:00:00 */
#define LAST_TIME   253402300799LL /* 9999-12-31 23:59:59 */

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char weekdays[] = "SunMonTueWedThuFriSat";

static char *two_digits(char *at, int n, char after)
{
    at[0] = (char)('0' + n / 10);
    at[1] = (char)('0' + n % 10);
    at[2] = after;
    return at + 3;
}

struct date {
    int year, month, day, weekday; /* month 1 to 12, weekday 0 (Sunday) to 6 */
};

/* The day so many days after 1970-01-01, in the Gregorian calendar; the year is taken to begin in
 * March, so that the leap day is its last. Not gmtime_r(3): dietlibc's is wrong before 1970. */
static struct date date_of(long long days)
{
    long long since = days + 719468; /* 0000-03-01; 400 years have 146097 days */
    long long cycles = since / 146097 - (since % 146097 < 0);
    int in_cycle = (int)(since - cycles * 146097);
    int year = (in_cycle - in_cycle / 1460 + in_cycle / 36524 - in_cycle / 146096) / 365;
    int in_year = in_cycle - (365 * year + year / 4 - year / 100);
    int month = (5 * in_year + 2) / 153; /* 0 is March */

    return (struct date){
        .year = (int)(cycles * 400) + year + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = in_year - (153 * month + 2) / 5 + 1,
        .weekday = (int)(((days + 4) % 7 + 7) % 7),
    };
}

/* By hand, because every reply has a date and snprintf takes longer than the rest of its head. */
void http_date_format(time_t t, char out[HTTP_DATE_SIZE])
{
    char *at = out + 5;

    if (t < FIRST_TIME || t > LAST_TIME)
        t = 0;
    int second = (int)(t % DAY_SECONDS + (t % DAY_SECONDS < 0 ? DAY_SECONDS : 0));
    struct date date = date_of((t - second) / DAY_SECONDS);
    memcpy(out, weekdays + 3 * date.weekday, 3);
    memcpy(out + 3, ", ", 2);
    at = two_digits(at, date.day, ' ');
    memcpy(at, months + 3 * (date.month - 1), 3);
    at[3] = ' ';
    at = two_digits(at + 4, date.year / 100, ' ') - 1;
    at = two_digits(at, date.year % 100, ' ');
    at = two_digits(at, second / 3600, ':');
    at = two_digits(at, second / 60 % 60, ':');
    at = two_digits(at, second % 60, ' ');
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
    /* RFC 850 has two digits. HTTP's own rule, 50 years from now, moves with the clock. */
    if (year < 100)
        year += year < 70 ? 2000 : 1900;
    *t = (time_t)days_since_epoch(year, month_number(month), day) * DAY_SECONDS + hour * 3600 +
         minute * 60 + second;
    return true;
}
