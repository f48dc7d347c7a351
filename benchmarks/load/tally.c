/* Names and sums; see tally.h. */
#include "tally.h"

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
