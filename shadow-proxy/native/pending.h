/*
 * The bytes for one client that the kernel has not taken yet: a queue, in blocks. Each block is a mapping of its own,
 * so that memory returns to the system as soon as its bytes are sent or dropped. With `malloc`, such blocks would stay
 * with the process if a small allocation follows them. Only pages that were written take memory.
 */
#ifndef PENDING_H
#define PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

struct pending_block {
  struct pending_block *next;
  /* Bytes that are still to be sent: `bytes[at, end)`. */
  size_t at, end;
  uint8_t bytes[];
};

enum { PENDING_BLOCK = 256 * 1024, PENDING_ROOM = PENDING_BLOCK - sizeof(struct pending_block) };

/* All zeros: empty. */
struct pending {
  struct pending_block *first, *last;
};

static inline bool pending_is_empty(const struct pending *pending) { return pending->first == NULL; }

/* Appends bytes; false if there is no memory for all of them. */
static inline bool pending_add(struct pending *pending, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    struct pending_block *last = pending->last;
    if (last == NULL || last->end == PENDING_ROOM) {
      void *memory = mmap(NULL, PENDING_BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) return false;
      last = memory;
      if (pending->last == NULL) pending->first = last;
      else pending->last->next = last;
      pending->last = last;
    }
    size_t room = PENDING_ROOM - last->end;
    size_t count = length < room ? length : room;
    memcpy(last->bytes + last->end, bytes, count);
    last->end += count;
    bytes += count;
    length -= count;
  }
  return true;
}

/* The first contiguous bytes of a queue that is not empty. */
static inline const uint8_t *pending_front(const struct pending *pending, size_t *length) {
  const struct pending_block *first = pending->first;
  *length = first->end - first->at;
  return first->bytes + first->at;
}

/* Removes the first `length` bytes, which were sent. */
static inline void pending_sent(struct pending *pending, size_t length) {
  struct pending_block *first = pending->first;
  first->at += length;
  if (first->at < first->end) return;
  pending->first = first->next;
  if (first->next == NULL) pending->last = NULL;
  munmap(first, PENDING_BLOCK);
}

static inline void pending_free(struct pending *pending) {
  while (pending->first != NULL) pending_sent(pending, pending->first->end - pending->first->at);
}

#endif
