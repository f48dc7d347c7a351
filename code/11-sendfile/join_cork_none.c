/* NetBSD has no cork: its <netinet/tcp.h> keeps a number for TCP_NOPUSH, and says "notyet". */
#include "11-sendfile/send_path.h"

const struct join join_cork = {.name = "cork"};
