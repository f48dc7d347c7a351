/* OpenBSD and NetBSD have no sendfile(). */
#include "11-sendfile/send_path.h"

const struct body body_sendfile = {.name = "sendfile"};
