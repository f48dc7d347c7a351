/*
 * closing.h: to be called before close(). kqueue(2) deletes the events of a descriptor when it is
 * closed, so this does nothing, except with libkqueue, which does not notice close().
 */
#ifndef CLOSING_H
#define CLOSING_H

void before_close(int queue, int fd);

#endif
