/*
 * http_date_test: dates written and read, against the C library's own calendar.
 *
 * Run: build/asan/http_date_test
 */
#include "http_date.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define ROUNDS 20000
#define DAY    86400

static const char *const formats[] = {
    "%a, %d %b %Y %H:%M:%S GMT", /* RFC 9110 */
    "%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
    "%a %b %e %H:%M:%S %Y",      /* asctime(3) */
};

static const struct {
    long long time;
    const char *date;
} known[] = {
    {-62167219200LL, "Sat, 01 Jan 0000 00:00:00 GMT"},
    {-11670915599LL, "Tue, 29 Feb 1600 23:00:01 GMT"},
    {-3155644800LL, "Sat, 01 Jan 1870 08:00:00 GMT"},
    {-2203934400LL, "Wed, 28 Feb 1900 12:00:00 GMT"},
    {-2203891200LL, "Thu, 01 Mar 1900 00:00:00 GMT"},
    {-1LL, "Wed, 31 Dec 1969 23:59:59 GMT"},
    {0LL, "Thu, 01 Jan 1970 00:00:00 GMT"},
    {951782400LL, "Tue, 29 Feb 2000 00:00:00 GMT"},
    {2147483648LL, "Tue, 19 Jan 2038 03:14:08 GMT"},
    {4107542400LL, "Mon, 01 Mar 2100 00:00:00 GMT"},
    {253402300799LL, "Fri, 31 Dec 9999 23:59:59 GMT"},
    {253402300800LL, "Thu, 01 Jan 1970 00:00:00 GMT"},
    {-62167219201LL, "Thu, 01 Jan 1970 00:00:00 GMT"},
    {1LL << 56, "Thu, 01 Jan 1970 00:00:00 GMT"},
};

static bool means(const char *text, time_t t)
{
    time_t parsed;

    return http_date_parse(text, strlen(text), &parsed) && parsed == t;
}

static bool is_date(const char *text, size_t len)
{
    time_t parsed;

    return http_date_parse(text, len, &parsed);
}

static long this_year; /* as in a struct tm */

/* http_date_format() is strftime() of the first format, http_date_parse() inverts all. */
static bool agrees(time_t t)
{
    struct tm tm;
    char expected[64], got[HTTP_DATE_SIZE];
    bool ok = true;

    gmtime_r(&t, &tm);
    for (int i = 0; i < 3; i++) {
        if (i == 1 && labs((long)tm.tm_year - this_year) > 49) /* two digits say no more */
            continue;
        strftime(expected, sizeof expected, formats[i], &tm);
        ok = ok && means(expected, t);
        if (i == 0) {
            http_date_format(t, got);
            ok = ok && strcmp(got, expected) == 0;
        }
    }
    return ok;
}

/* dietlibc's is not before 1970. */
static bool calendar_is_right(time_t before_1970)
{
    struct tm tm;

    return gmtime_r(&before_1970, &tm) != NULL && tm.tm_year == 69 && tm.tm_mon == 11 &&
           tm.tm_mday == 31;
}

static void check_calendar(void)
{
    time_t now = time(NULL);
    int wrong = 0;

    this_year = gmtime(&now)->tm_year;
    uint64_t state = 2003;

    for (time_t day = calendar_is_right(-1) ? -100L * 365 : 0; day < 150L * 366; day++)
        wrong += !agrees(day * DAY + 45296);
    tap_ok(wrong == 0, "every day of 250 years (of 150 where the library knows no more): %d wrong",
           wrong);
    wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        wrong += !agrees((time_t)(state >> 33) * 100 % 250000000000);
    }
    tap_ok(wrong == 0, "%d moments up to the year 9892: %d wrong", ROUNDS, wrong);
}

/* A date that is cut off, or followed by more, is none. */
static void check_cut(time_t t, const char *format)
{
    struct tm tm;
    char text[64];
    int taken = 0;

    gmtime_r(&t, &tm);
    size_t len = strftime(text, sizeof text, format, &tm);
    for (size_t n = 0; n < len; n++)
        taken += is_date(text, n);
    tap_ok(taken == 0, "\"%s\": %d of its beginnings are dates", text, taken);
    text[len] = 'x';
    tap_ok(!is_date(text, len + 1), "\"%.*s\" is no date", (int)len + 1, text);
}

/* RFC 9110 section 5.6.7: two digits that would be more than 50 years ahead are of the century
 * before. */
static void check_century(int ahead, int expected)
{
    time_t now = time(NULL), parsed = 0;
    struct tm tm = *gmtime(&now), got = {0};
    char text[64];

    snprintf(text, sizeof text, "Sunday, 01-Jan-%02d 00:00:00 GMT",
             (tm.tm_year + 1900 + ahead) % 100);
    bool ok = http_date_parse(text, strlen(text), &parsed) && gmtime_r(&parsed, &got) != NULL;
    tap_ok(ok && got.tm_year - tm.tm_year == expected, "%s: %d years from now", text,
           got.tm_year - tm.tm_year);
}

int main(void)
{
    static const char *const none[] = {
        "",
        " ",
        "0",
        "now",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 PST",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 -8:49:37 GMT",
        "Sun, 06 Nov 19994 08:49:37 GMT",
        "Sun, 06 Nov 2094",
        "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        "99999999999999999999999999999999999999999999999999999999999999999999",
        "9999999999999999999999999999999999999999999999999999999999999999", /* 64 */
        "-1",
        "06 Nov 1994 08:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "%s%n%d",
        /* days that are none, and a leap second at another time than the last of a day */
        "Fri, 31 Feb 2100 00:00:00 GMT",
        "Mon, 29 Feb 2100 00:00:00 GMT",
        "Tue, 29 Feb 2023 00:00:00 GMT",
        "Fri, 31 Apr 2100 00:00:00 GMT",
        "Fri, 00 Jan 2100 00:00:00 GMT",
        "Sunday, 31-Feb-94 08:49:37 GMT",
        "Sun Feb 31 08:49:37 1994",
        "Fri, 01 Jan 2100 00:00:60 GMT",
        "Fri, 01 Jan 2100 23:58:60 GMT",
        "Fri, 01 Jan 2100 24:00:00 GMT",
        /* names: of a weekday, of another form, in other letters */
        "Xyz, 01 Jan 2100 00:00:00 GMT",
        ", 01 Jan 2100 00:00:00 GMT",
        "a b c, 01 Jan 2100 00:00:00 GMT",
        "Friday, 01 Jan 2100 00:00:00 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunda, 06-Nov-94 08:49:37 GMT",
        "Xyz Nov  6 08:49:37 1994",
        "Sunday Nov  6 08:49:37 1994",
        "Sun, Nov  6 08:49:37 1994",
        "sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "SUN, 06 NOV 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 ovD 1994 08:49:37 GMT",
        /* widths and spaces */
        ",1 Jan 2100 0:0:0 GMT",
        "Fri, 1 Jan 2100 00:00:00 GMT",
        "Fri,  1 Jan 2100 00:00:00 GMT",
        "Fri, +1 Jan 2100 00:00:00 GMT",
        "Fri, 001 Jan 2100 00:00:00 GMT",
        "Fri, 01 Jan 100 00:00:00 GMT",
        "Fri, 01 Jan +100 00:00:00 GMT",
        "Fri, 01 Jan 2100 0:00:00 GMT",
        "Fri, 01 Jan 2100 +0:00:00 GMT",
        "Fri, 01 Jan 2100 00: 0:00 GMT",
        "Fri, 01  Jan 2100 00:00:00 GMT",
        "Fri,01 Jan 2100 00:00:00 GMT",
        "Fri,\t01\tJan\t2100\t00:00:00\tGMT",
        " Fri, 01 Jan 2100 00:00:00 GMT",
        "Fri, 01 Jan 2100 00:00:00  GMT",
        "Fri, 01 Jan 2100 00:00:00GMT",
        "Fri, dd Jan 2100 00:00:00 GMT",
        "Fri, 01 b 2100 00:00:00 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 6-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov 06 08:49:37 94",
        "Sun Nov   6 08:49:37 1994",
        "Sun Nov  6 08:49:37 19940",
        "Sun Nov  6 08:49:37 1994 GMT",
    };
    char date[HTTP_DATE_SIZE];

    check_calendar();
    for (int i = 0; i < 3; i++)
        check_cut(784111777, formats[i]);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        tap_ok(!is_date(none[i], strlen(none[i])), "\"%s\" is no date", none[i]);
    tap_ok(means("Sunday, 06-Nov-94 08:49:37 GMT", 784111777), "RFC 850, 1994");
    tap_ok(means("Monday, 06-Nov-23 08:49:37 GMT", 1699260577), "RFC 850, 2023");
    tap_ok(means("Sun, 06 Nov 1994 23:59:60 GMT", 784166400), "a leap second");
    tap_ok(means("Sun Nov 06 08:49:37 1994", 784111777), "asctime(3) with two digits of the day");
    tap_ok(means("Mon, 06 Nov 1994 08:49:37 GMT", 784111777),
           "another weekday: it is not compared");
    tap_ok(means("Wed, 29 Feb 2012 00:00:00 GMT", 1330473600), "a leap day");
    tap_ok(means("Sun, 01 Jan 0000 00:00:00 GMT", -62167219200), "the year 0 is not 2000");
    check_century(0, 0);
    check_century(49, 49);
    check_century(52, -48);
    tap_ok(means("Fri, 01 Jan 0100 00:00:00 GMT", -59011459200), "a year of three digits");
    bool long_one = is_date("999999999999999999999999999999999999999999999999999999999999999", 63);
    bool after_it = means("Sun Nov  6 08:49:37 1994", 784111777);
    tap_ok(!long_one && after_it, "nothing is left of the date before");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        http_date_format((time_t)known[i].time, date);
        tap_ok(strcmp(date, known[i].date) == 0, "%lld is %s: %s", known[i].time, known[i].date,
               date);
    }
    return tap_done();
}
