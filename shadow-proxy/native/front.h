/*
 * The clients of a shard: accepts them, reads and writes their sockets. What they send goes to the sequencing thread as
 * it came, what they are to get comes from there, as records of src/front/records.ts.
 *
 *   socket ─▶ ring ─▶ session         session ─▶ ring ─▶ socket, once a turn
 *
 * It runs in a thread of its own (`front_run`), or turn by turn on the sequencing thread (`front_turn`). Linux only.
 */
#ifndef FRONT_H
#define FRONT_H

#include <stdbool.h>
#include <stdint.h>

struct front;

/* A front with two rings of so many bytes, a power of two; NULL and errno where the system refuses. */
struct front *front_new(uint32_t ring_bytes);

/* The memory of a ring, its header in front: from this side, and to it. */
void *front_ring_out(struct front *front);
void *front_ring_in(struct front *front);

/* Accepts from a listening socket, which stays the caller's, too; 0, or a negative errno. */
int front_listen_on(struct front *front, int listener, uint32_t most_clients);
/* Listens at a numeric address that other fronts listen at, too (SO_REUSEPORT); 0, or a negative errno. */
int front_listen_at(struct front *front, const char *address, uint16_t port, uint32_t most_clients);

/* Readable while there is something to do for `front_turn`. */
int front_poll_fd(const struct front *front);
/* Readable when the sequencing thread is to look into its ring; where the front runs in a thread. */
int front_event_fd(const struct front *front);

/* Sends what is to be sent, reads what is there. Whether the sequencing thread is to look into its ring. */
bool front_turn(struct front *front);
/* Sends what is to be sent. Whether the sequencing thread is to look into its ring. */
bool front_send(struct front *front);

/* Starts the thread; 0, or a negative errno. */
int front_run(struct front *front, const char *name);
/* Wakes the thread. */
void front_ring(struct front *front);
/* The bell was heard. */
void front_heard(struct front *front);

/* Ends the thread, closes every socket, and gives back the memory but for the rings, which JavaScript still has. */
void front_stop(struct front *front);
/* Gives back the memory of the rings, and the front. */
void front_free(struct front *front);

#endif
