/*
 * appendix.h: what is measured beside the chapter's three backends. It replaces operations of the
 * server; to understand the server it is not needed. Other ways of lighttpd 1.5 (-d), Perlbal's (-d
 * readahead), lighttpd's stat accelerator (-m unix, -m tcp), O_NOATIME (-n).
 */
#ifndef APPENDIX_H
#define APPENDIX_H

#include "12-aio/backend.h"

extern const struct body_source source_readahead, source_threads_sendfile;
void readahead_start(int readers);
void threads_sendfile_start(int readers);

/* Fills *from and starts the threads that it needs. False: no such backend. */
bool appendix_choose(const char *name, int readers, struct body_source *from);

/* Reading a file is not noted in its inode, where we may ask for that. */
void appendix_no_atime(struct conn_ops *ops);

#define APPENDIX_LOOK_UP_HELP                                                                      \
    "threads that look up files not in memory, default 4 (0: the loop waits);\n"                   \
    "              unix or tcp: a process that is asked over sockets first; then the loop opens\n" \
    "              the file, and where that waits for a disk all wait, without a bound"

/* If `who` is "unix" or "tcp": starts the helper process, before there are threads, and has it
 * asked before each look-up. The loop watches helper_fd() as jobs_fd(). helper_stop() blocks. */
bool helper_choose(struct conn_ops *ops, const char *who, int docroot_fd);
int helper_fd(void);
void helper_stop(void);

#endif
