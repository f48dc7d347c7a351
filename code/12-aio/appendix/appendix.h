/*
 * appendix.h: what is measured beside the chapter's three backends. It replaces operations of the
 * server, and the reading path needs none of it: the other rows of the table of lighttpd 1.5 (-d),
 * Perlbal's way, lighttpd's stat accelerator (-m unix, -m tcp), O_NOATIME (-n).
 */
#ifndef APPENDIX_H
#define APPENDIX_H

#include "12-aio/backend.h"

extern const struct body_source source_readahead, source_threads_sendfile;
void readahead_start(int readers);
void threads_sendfile_start(int readers);

/* False: no such backend. */
bool appendix_choose(const char *name, int readers, struct body_source *from);

/* Reading a file is not noted in its inode, where we may ask for that. */
void appendix_no_atime(struct conn_ops *ops);

#define APPENDIX_LOOK_UP_HELP                                                                      \
    "threads that look up files not in memory, default 4 (0: the loop waits);\n"                   \
    "              unix or tcp: a process that is asked over sockets first; then the loop opens\n" \
    "              the file, and where that waits for a disk all wait, without a bound"

/* If `who` is "unix" or "tcp": starts the helper process, before there are threads, and has it
 * asked before each look-up. The loop watches helper_fd() as it watches jobs_fd(). */
bool helper_choose(struct conn_ops *ops, const char *who, int docroot_fd);
int helper_fd(void);
void helper_stop(void);

#endif
