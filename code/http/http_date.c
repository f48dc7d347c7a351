#include "http_date.h"

#include <string.h>

#define DAY_SECONDS 86400
#define FIFTY_YEARS 1577847600LL   /* of the Gregorian calendar, on average */
#define FIRST_TIME  -62167219200LL /* 0000-01-01 00:00:00 */
#define LAST_TIME   253402300799LL /* 9999-12-31 23:59:59 */

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

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

/* The date `days` days after 1970-01-01, in the Gregorian calendar; the year is taken to begin in
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
    memcpy(out, weekdays[date.weekday], 3);
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

/* Days from 1970-01-01 to a date of the Gregorian calendar; the year is taken to begin in March,
 * and not to be negative: hence the 400 years, of 146097 days. */
static long days_since_epoch(long year, int month, int day)
{
    year += month <= 2 ? 399 : 400;
    long in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return 365 * year + year / 4 - year / 100 + year / 400 + in_year - 719468 - 146097;
}

static int month_number(const char *name)
{
    for (int i = 0; i < 12; i++)
        if (memcmp(months + 3 * i, name, 3) == 0)
            return i + 1;
    return 0;
}

/* The numbers of a date, and the letters that stand for their digits in a form. */
enum { DAY, YEAR, HOUR, MINUTE, SECOND, MONTH, NUMBERS };
static const char letters[] = "dyhms";

/* The forms, each after the name of the weekday: that of today, that of RFC 850, whose weekday has
 * its whole name, and that of asctime(3). "b" is the name of a month. */
enum { RFC850 = 1 };
static const char *const forms[] = {
    ", dd b yyyy hh:mm:ss GMT",
    ", dd-b-yy hh:mm:ss GMT",
    " b dd hh:mm:ss yyyy",
    " b  d hh:mm:ss yyyy",
};

/* Whether at..end is of this form, to the letter: no sign, no space and no digit more or less. */
static bool is_of_form(const char *at, const char *end, const char *form, int n[NUMBERS])
{
    memset(n, 0, NUMBERS * sizeof *n);
    for (; *form != '\0' && at < end; form++, at++) {
        const char *letter = strchr(letters, *form);
        if (letter != NULL) {
            if (*at < '0' || *at > '9')
                return false;
            n[letter - letters] = n[letter - letters] * 10 + (*at - '0');
        } else if (*form == 'b') {
            if (end - at < 3 || (n[MONTH] = month_number(at)) == 0)
                return false;
            at += 2;
        } else if (*at != *form) {
            return false;
        }
    }
    return *form == '\0' && at == end;
}

/* The form of text[0..len), -1 if it has none. The weekday need not be that of the date: neither
 * HTTP's grammar nor other servers ask for that. */
static int find_form(const char *text, size_t len, int n[NUMBERS])
{
    for (int form = 0; form < (int)(sizeof forms / sizeof *forms); form++)
        for (int day = 0; day < 7; day++) {
            size_t name = form == RFC850 ? strlen(weekdays[day]) : 3;
            if (len > name && memcmp(text, weekdays[day], name) == 0 &&
                is_of_form(text + name, text + len, forms[form], n))
                return form;
        }
    return -1;
}

/* The minute after 23:59 may have a leap second. */
static bool is_time(const int n[NUMBERS])
{
    return n[HOUR] < 24 && n[MINUTE] < 60 &&
           (n[SECOND] < 60 || (n[SECOND] == 60 && n[HOUR] == 23 && n[MINUTE] == 59));
}

static long long seconds_of(const int n[NUMBERS])
{
    return (long long)days_since_epoch(n[YEAR], n[MONTH], n[DAY]) * DAY_SECONDS + n[HOUR] * 3600 +
           n[MINUTE] * 60 + n[SECOND];
}

bool http_date_parse(const char *text, size_t len, time_t *t)
{
    int n[NUMBERS], form = find_form(text, len, n);

    if (form < 0 || !is_time(n))
        return false;
    if (form == RFC850) { /* two digits of a year: the century is ours, or the one before */
        time_t now = time(NULL);
        n[YEAR] += date_of(now / DAY_SECONDS).year / 100 * 100;
        if (seconds_of(n) > now + FIFTY_YEARS)
            n[YEAR] -= 100;
    }
    if (date_of(days_since_epoch(n[YEAR], n[MONTH], n[DAY])).day != n[DAY]) /* 31 Feb, 0 Jan */
        return false;
    *t = (time_t)seconds_of(n);
    return *t == seconds_of(n); /* a time_t of 32 bits ends in 2038 */
}
