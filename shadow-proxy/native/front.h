/*
 * The clients of a shard: accepts them, and reads and writes their sockets. Data from clients goes unchanged to the
 * sequencing thread, which sends the data for clients, as records of src/front/records.ts.
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

/* A front with two rings of this size, a power of two; NULL and errno if the system refuses. */
struct front *front_new(uint32_t ring_bytes);

/* The memory of a ring, which begins with its header: from the front, and to it. */
void *front_ring_out(struct front *front);
void *front_ring_in(struct front *front);

/* Accepts from a listening socket, which also stays the caller's; 0, or a negative errno. */
int front_listen_on(struct front *front, int listener, uint32_t most_clients);
/* Listens at a numeric address that other fronts use, too (SO_REUSEPORT); 0, or a negative errno. */
int front_listen_at(struct front *front, const char *address, uint16_t port, uint32_t most_clients);

/* Readable while `front_turn` has something to do. */
int front_poll_fd(const struct front *front);
/* Readable when the sequencing thread must look into its ring; for a front with its own thread. */
int front_event_fd(const struct front *front);

/* Sends and reads everything that is ready. @returns whether the sequencing thread must look into its ring */
bool front_turn(struct front *front);
/* Sends everything that is ready. @returns whether the sequencing thread must look into its ring */
bool front_send(struct front *front);

/* Starts the thread; 0, or a negative errno. */
int front_run(struct front *front, const char *name);
/* Wakes the thread. */
void front_ring(struct front *front);
/* Called when the bell was noticed. */
void front_heard(struct front *front);

/* Ends the thread, closes every socket, and frees the memory except the rings, which JavaScript still uses. */
void front_stop(struct front *front);
/* Frees the rings, and the front. */
void front_free(struct front *front);

#endif
