/* MSG_MORE is Linux's. */
#include "11-sendfile/send_path.h"

const struct join join_more = {.name = "more"};
