/*
 * list.h: a doubly linked list. Its links are members of the structs that are in it, so to add and
 * to remove takes no memory and cannot fail. The list is a ring: its head is a `struct list` of its
 * own, between the last node and the first. A node is in one list at a time, or in none.
 */
#ifndef LIST_H
#define LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

/* Initialises a head, or a node that is in no list. */
#define EMPTY_LIST(list)                                                                           \
    {                                                                                              \
        &(list), &(list)                                                                           \
    }

/* From a node to the struct whose member it is: CONTAINER_OF(node, struct client, node). */
#define CONTAINER_OF(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

static inline void list_init(struct list *list)
{
    list->next = list->prev = list;
}

static inline bool list_is_empty(const struct list *head)
{
    return head->next == head;
}

/* Puts the node, which is in no list, behind the last. */
static inline void list_append(struct list *head, struct list *node)
{
    node->next = head;
    node->prev = head->prev;
    node->prev->next = head->prev = node;
}

/* Takes the node out of its list. One that is in none stays so. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#endif
