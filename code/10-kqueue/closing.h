/*
 * closing.h: what a queue is told before a descriptor is closed. kqueue(2): events of a descriptor
 * are deleted when it is closed, so there is nothing to say; libkqueue does not find out.
 */
#ifndef CLOSING_H
#define CLOSING_H

void before_close(int queue, int fd);

#endif
