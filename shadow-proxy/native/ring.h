/*
 * Records from one thread to another through shared memory: the same rings as in src/front/shared-ring.ts, whose comment
 * describes their format. This is the end in C: it reads what the sequencing thread writes, and vice versa.
 */
#ifndef RING_H
#define RING_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { RING_WRITTEN = 0, RING_READ = 16, RING_ASLEEP = 32, RING_FULL = 48 };
enum { RING_HEADER = 256, RING_RECORD = 8, RING_SKIP = 255, RING_MOST = 64 * 1024 };

struct ring {
  int32_t *header;
  uint8_t *bytes;
  uint32_t size;
  /* The position of this end: bytes since the beginning, modulo 2^32. A writer publishes it. */
  uint32_t at;
};

static inline void ring_init(struct ring *ring, void *memory, uint32_t size) {
  ring->header = memory;
  ring->bytes = (uint8_t *)memory + RING_HEADER;
  ring->size = size;
  ring->at = 0;
}

static inline uint32_t ring_load(const struct ring *ring, int field) {
  return (uint32_t)__atomic_load_n(&ring->header[field], __ATOMIC_SEQ_CST);
}

static inline void ring_store(struct ring *ring, int field, uint32_t value) {
  __atomic_store_n(&ring->header[field], (int32_t)value, __ATOMIC_SEQ_CST);
}

/* Clears a flag; returns whether it was set. */
static inline bool ring_lower(struct ring *ring, int flag) {
  return ring_load(ring, flag) == 1 && __atomic_exchange_n(&ring->header[flag], 0, __ATOMIC_SEQ_CST) == 1;
}

static inline uint32_t ring_padded(uint32_t length) { return (length + 3) & ~3u; }

static inline uint32_t ring_word(const struct ring *ring, uint32_t place) {
  uint32_t word;
  memcpy(&word, ring->bytes + place, 4);
  return word;
}

static inline void ring_set_word(struct ring *ring, uint32_t place, uint32_t word) {
  memcpy(ring->bytes + place, &word, 4);
}

/* ── the writer ──────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Free bytes, if a record may have to skip the end of the memory first. */
static inline uint32_t ring_free(const struct ring *ring) {
  return ring->size - (ring->at - ring_load(ring, RING_READ));
}

/*
 * The place for the bytes of the next record, and how many fit there, at most RING_MOST; NULL if fewer than `least`
 * fit.
 */
static inline uint8_t *ring_room(struct ring *ring, uint32_t least, uint32_t *most) {
  uint32_t free = ring_free(ring);
  uint32_t place = ring->at & (ring->size - 1);
  uint32_t left = ring->size - place;
  if (left < RING_RECORD + least) {
    if (free < left + RING_RECORD + least) return NULL;
    /* Only one word may be left: it holds the kind and the length. */
    ring_set_word(ring, place + (left > 4 ? 4 : 0), (uint32_t)RING_SKIP << 24);
    ring->at += left;
    free -= left;
    place = 0;
    left = ring->size;
  }
  uint32_t room = free < left ? free : left;
  if (room < RING_RECORD + least) return NULL;
  room -= RING_RECORD;
  *most = room < RING_MOST ? room : RING_MOST;
  return ring->bytes + place + RING_RECORD;
}

/* Writes the record whose bytes are at the place of `ring_room`. The reader sees it after `ring_publish`. */
static inline void ring_put(struct ring *ring, uint32_t kind, uint32_t id, uint32_t length) {
  uint32_t place = ring->at & (ring->size - 1);
  ring_set_word(ring, place, id);
  ring_set_word(ring, place + 4, kind << 24 | length);
  ring->at += RING_RECORD + ring_padded(length);
}

static inline void ring_publish(struct ring *ring) { ring_store(ring, RING_WRITTEN, ring->at); }

/* From now on the reader rings when it has made room. False if there is room for `bytes` already. */
static inline bool ring_waits(struct ring *ring, uint32_t bytes) {
  ring_store(ring, RING_FULL, 1);
  if (ring_free(ring) < bytes) return true;
  ring_store(ring, RING_FULL, 0);
  return false;
}

/* ── the reader ──────────────────────────────────────────────────────────────────────────────────────────────────── */

struct record {
  uint32_t kind;
  uint32_t id;
  uint8_t *bytes;
  uint32_t length;
};

/* Takes the next record before `written`; false if there is none. The bytes are valid until READ is stored. */
static inline bool ring_take(struct ring *ring, uint32_t written, struct record *record) {
  while (ring->at != written) {
    uint32_t place = ring->at & (ring->size - 1);
    uint32_t left = ring->size - place;
    uint32_t tag = ring_word(ring, place + (left > 4 ? 4 : 0));
    if (tag >> 24 == RING_SKIP) {
      ring->at += left;
      continue;
    }
    record->kind = tag >> 24;
    record->length = tag & 0xffffff;
    record->id = ring_word(ring, place);
    record->bytes = ring->bytes + place + RING_RECORD;
    ring->at += RING_RECORD + ring_padded(record->length);
    return true;
  }
  return false;
}

/* From now on the writer rings when there are records. False if there are some already. */
static inline bool ring_sleeps(struct ring *ring) {
  ring_store(ring, RING_ASLEEP, 1);
  if (ring_load(ring, RING_WRITTEN) == ring->at) return true;
  ring_store(ring, RING_ASLEEP, 0);
  return false;
}

#endif
