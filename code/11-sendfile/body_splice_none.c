/* splice() is Linux's. */
#include "11-sendfile/send_path.h"

const struct body body_splice = {.name = "splice"};
