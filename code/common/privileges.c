#include "privileges.h"
#include "die.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#define MOST_ID 0xfffffffe /* (uid_t)-1 means "leave it as it is" to the calls below */

static const char *chosen; /* -u */
static uid_t uid;
static gid_t gid;

/* A number from 0 on. If look_up() does not find that user, its group has the same number. */
static bool parse_number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0')
        return false;
    if (errno != 0 || n > MOST_ID)
        die(EXIT_USAGE, "-u %s: expected a user's name, or a number up to %u", text, MOST_ID);
    uid = (uid_t)n;
    gid = (gid_t)n;
    return true;
}

static bool take_entry(const struct passwd *entry, bool is_number)
{
    if (entry == NULL || (is_number ? entry->pw_uid != uid : strcmp(entry->pw_name, chosen) != 0))
        return false;
    uid = entry->pw_uid;
    gid = entry->pw_gid;
    return true;
}

/* glibc's getpwnam() loads libraries, which a static program cannot do. So on Linux users that
 * /etc/passwd does not have are to be given by number. */
static bool look_up(bool is_number)
{
#ifdef __linux__
    FILE *file = fopen("/etc/passwd", "r");
    const struct passwd *entry = NULL;
    bool found = false;

    while (file != NULL && !found && (entry = fgetpwent(file)) != NULL)
        found = take_entry(entry, is_number);
    if (file != NULL)
        fclose(file);
    return found;
#else
    return take_entry(is_number ? getpwuid(uid) : getpwnam(chosen), is_number);
#endif
}

static bool is_that_user(void)
{
    return getuid() == uid && geteuid() == uid;
}

void privileges_user(const char *user)
{
    chosen = user;
    if (*user == '\0')
        die(EXIT_USAGE, "-u: expected a user's name or number");
    bool is_number = parse_number(user);
    if (!look_up(is_number) && !is_number)
        die(EXIT_FAILURE, "-u %s: no such user", user);
    if (geteuid() != 0 && !is_that_user())
        die(EXIT_FAILURE, "-u %s: only root can become another user", user);
#ifdef __linux__
    if (prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL) < 0)
        die_errno("prctl PR_SET_NO_NEW_PRIVS");
#endif
}

/* The groups first: after setuid() they cannot be changed. */
static void become(void)
{
    if (setgroups(1, &gid) < 0)
        die_errno("setgroups");
    if (setgid(gid) < 0)
        die_errno("setgid %s", chosen);
    if (setuid(uid) < 0) /* called by root it sets the real, the effective and the saved one */
        die_errno("setuid %s", chosen);
}

void privileges_drop(void)
{
    if (chosen == NULL)
        return;
    if (!is_that_user())
        become();
    if (uid != 0 && (setuid(0) == 0 || seteuid(0) == 0 || !is_that_user()))
        die(EXIT_FAILURE, "-u %s: this process could become root again", chosen);
}

void privileges_warn(void)
{
    if (chosen == NULL && geteuid() == 0)
        write_line("running as root; with -u USER it gives that up once it listens");
}
