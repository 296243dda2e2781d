#define _GNU_SOURCE
#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pending.h"
#include "ring.h"

/* Records of src/front/records.ts. */
enum from_front { OPENED = 1, DATA, ENDED, CLOSED, SENT, SENT_ALL, DROPPED, OVER };
enum to_front { WRITE = 1, PAUSE, RESUME, END, DESTROY_SOON, DESTROY, LIMIT, CLOSE };

enum {
  EVENTS = 256,
  /* Maximum number of orders that are taken before their data is sent. */
  ORDERS = 1024,
  ACCEPTS = 64,
  /* Minimum room for what a client sends. */
  LEAST_READ = 4096,
  /* Room that the records about EVENTS, ACCEPTS or ORDERS may take, besides data of clients. */
  RESERVE = 64 * 1024,
  /* The same as in src/front/tcp-server.ts. */
  BACKLOG = 4096,
  IOVECS = 64,
  KEEP_ALIVE_S = 300,
};

/*
 * Clients are numbered one after the other, modulo 2^32. The last bits of a client's number are its place; a number
 * whose place is taken is skipped. At most half of the places are taken.
 */
enum { FIRST_PLACES = 64, PLACES = 1 << 21 };

struct client {
  int fd;
  uint32_t id;
  /* The events that epoll watches; 0: epoll does not have the socket. */
  uint32_t watched;
  bool paused;
  /* `ended`: the client has closed its side. `shut`: this side is closed. */
  bool ended, shut;
  /* What to do once all pending bytes are sent. */
  bool ending, closing;
  /* Whether the sequencing thread knows that the client reads slowly. */
  bool slow;
  /* Bytes that the kernel has taken, modulo 2^32. */
  uint32_t sent;
  /* Bytes that the kernel has not taken. */
  struct pending pending;
  /* The first and the last piece that the present orders write; -1 if there is none. */
  int first, last;
};

struct piece {
  struct iovec bytes;
  int next;
};

struct front {
  struct ring in, out;
  void *memory_in, *memory_out;
  int epoll, event_in, event_out, listener, spare;
  struct client **clients;
  uint32_t places, count, most, next_id;
  struct piece pieces[ORDERS];
  struct client *dirty[ORDERS];
  int piece_count, dirty_count;
  bool closing, running;
  bool stop;
  pthread_t thread;
};

/* The addresses of these mark events of the listener and of the bell; all other events have a client's address. */
static char LISTENER, BELL;

static void *ring_memory(uint32_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, RING_HEADER + (size_t)bytes) != 0) return NULL;
  memset(memory, 0, RING_HEADER + (size_t)bytes);
  return memory;
}

struct front *front_new(uint32_t ring_bytes) {
  struct front *front = calloc(1, sizeof *front);
  if (front == NULL) return NULL;
  front->listener = -1;
  front->memory_in = ring_memory(ring_bytes);
  front->memory_out = ring_memory(ring_bytes);
  front->epoll = epoll_create1(EPOLL_CLOEXEC);
  front->event_in = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  front->event_out = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  front->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &BELL};
  if (front->memory_in == NULL || front->memory_out == NULL || front->epoll < 0 || front->event_in < 0 ||
      front->event_out < 0 || epoll_ctl(front->epoll, EPOLL_CTL_ADD, front->event_in, &event) < 0) {
    int problem = errno;
    front_stop(front);
    front_free(front);
    errno = problem;
    return NULL;
  }
  ring_init(&front->in, front->memory_in, ring_bytes);
  ring_init(&front->out, front->memory_out, ring_bytes);
  /* On the sequencing thread there is no sleep, and every write must be sent. */
  ring_store(&front->in, RING_ASLEEP, 1);
  return front;
}

void *front_ring_out(struct front *front) { return front->memory_out; }
void *front_ring_in(struct front *front) { return front->memory_in; }
int front_poll_fd(const struct front *front) { return front->epoll; }
int front_event_fd(const struct front *front) { return front->event_out; }

static void signal_eventfd(int fd) {
  uint64_t one = 1;
  /* The write can fail only after 2^64 signals that nobody has read. */
  ssize_t written = write(fd, &one, sizeof one);
  (void)written;
}

static void drain_eventfd(int fd) {
  uint64_t count;
  ssize_t got = read(fd, &count, sizeof count);
  (void)got;
}

void front_ring(struct front *front) { signal_eventfd(front->event_in); }
void front_heard(struct front *front) { drain_eventfd(front->event_out); }

/* ── records for the sequencing thread ───────────────────────────────────────────────────────────────────────────── */

/* There is room, because `front_turn` and `take_orders` kept RESERVE free. */
static void emit(struct front *front, enum from_front kind, uint32_t id, const void *bytes, uint32_t length) {
  uint32_t most;
  uint8_t *room = ring_room(&front->out, length, &most);
  if (room == NULL) return;
  if (length > 0) memcpy(room, bytes, length);
  ring_put(&front->out, kind, id, length);
}

/* Whether there is room for everything that one step may emit; if not, the reader rings when there is. */
static bool has_room(struct front *front) {
  ring_publish(&front->out);
  return ring_free(&front->out) >= 2 * RESERVE || !ring_waits(&front->out, 2 * RESERVE);
}

/* ── clients ─────────────────────────────────────────────────────────────────────────────────────────────────────── */

static void close_client(struct front *front, struct client *client);

/* If the kernel refuses, nothing would ever be read: the client is closed, and the caller must free it. */
static void watch(struct front *front, struct client *client) {
  uint32_t reads = client->paused || client->ended ? 0 : EPOLLIN;
  uint32_t wanted = reads | (pending_is_empty(&client->pending) ? 0 : EPOLLOUT);
  if (wanted == client->watched) return;
  /* A socket without wanted events is removed: otherwise epoll would report an error of it repeatedly. */
  int what = client->watched == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  struct epoll_event event = {.events = wanted, .data.ptr = client};
  if (epoll_ctl(front->epoll, what, client->fd, &event) < 0) {
    close_client(front, client);
    return;
  }
  client->watched = wanted;
}

/* Removed from epoll first: it would report a descriptor as long as any duplicate of it is open. */
static void close_watched(struct front *front, int fd) {
  epoll_ctl(front->epoll, EPOLL_CTL_DEL, fd, NULL);
  close(fd);
}

static struct client **place_of(struct front *front, uint32_t id) { return &front->clients[id & (front->places - 1)]; }

static struct client *find(struct front *front, uint32_t id) {
  struct client *client = front->places == 0 ? NULL : *place_of(front, id);
  return client != NULL && client->id == id ? client : NULL;
}

/* Doubles the number of places; false if there is no memory. Each client keeps a place of its own. */
static bool add_places(struct front *front) {
  uint32_t before = front->places;
  uint32_t places = before == 0 ? FIRST_PLACES : before * 2;
  struct client **clients = places > PLACES ? NULL : calloc(places, sizeof *clients);
  if (clients == NULL) return false;
  struct client **old = front->clients;
  front->clients = clients;
  front->places = places;
  for (uint32_t place = 0; place < before; place++)
    if (old[place] != NULL) *place_of(front, old[place]->id) = old[place];
  free(old);
  return true;
}

/* A client with a new number; NULL if there is no memory. */
static struct client *new_client(struct front *front, int fd) {
  if (front->count * 2 >= front->places && !add_places(front)) return NULL;
  struct client *client = calloc(1, sizeof *client);
  if (client == NULL) return NULL;
  while (*place_of(front, front->next_id) != NULL) front->next_id++;
  client->fd = fd;
  client->id = front->next_id++;
  client->first = client->last = -1;
  *place_of(front, client->id) = client;
  front->count++;
  return client;
}

static void emit_over(struct front *front) {
  if (front->closing && front->count == 0) emit(front, OVER, 0, NULL, 0);
}

/* Closes the connection at once. The client may still be in the dirty list: then `send_all` frees it. */
static void close_client(struct front *front, struct client *client) {
  if (client->fd < 0) return;
  if (client->watched != 0) close_watched(front, client->fd);
  else close(client->fd);
  client->fd = -1;
  *place_of(front, client->id) = NULL;
  front->count--;
  emit(front, CLOSED, client->id, NULL, 0);
  emit_over(front);
}

static void free_client(struct client *client) {
  pending_free(&client->pending);
  free(client);
}

/* Reports how much was sent to a client that reads slowly. */
static void report(struct front *front, struct client *client) {
  bool all = pending_is_empty(&client->pending);
  if (all && !client->slow) return;
  client->slow = !all;
  emit(front, all ? SENT_ALL : SENT, client->id, &client->sent, sizeof client->sent);
}

/* Does what must follow the last byte. @returns whether the connection still exists */
static bool after_last(struct front *front, struct client *client) {
  if (!pending_is_empty(&client->pending)) return true;
  if (client->closing || (client->ending && client->ended)) {
    close_client(front, client);
    return false;
  }
  if (client->ending && !client->shut) {
    client->shut = true;
    shutdown(client->fd, SHUT_WR);
  }
  return true;
}

/* Called when the kernel takes bytes again. */
static void drain(struct front *front, struct client *client) {
  while (!pending_is_empty(&client->pending)) {
    size_t length;
    const uint8_t *bytes = pending_front(&client->pending, &length);
    ssize_t sent = send(client->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) {
      close_client(front, client);
      return;
    }
    pending_sent(&client->pending, (size_t)sent);
    client->sent += (uint32_t)sent;
  }
  report(front, client);
  if (after_last(front, client)) watch(front, client);
}

/* Sends the pieces that the present orders have for a client; keeps bytes that the kernel does not take. */
static void send_pieces(struct front *front, struct client *client) {
  int at = client->first;
  client->first = client->last = -1;
  bool takes = pending_is_empty(&client->pending);
  while (at != -1 && client->fd >= 0) {
    struct iovec bytes[IOVECS];
    int count = 0;
    size_t length = 0;
    for (; at != -1 && count < IOVECS; at = front->pieces[at].next) {
      bytes[count++] = front->pieces[at].bytes;
      length += front->pieces[at].bytes.iov_len;
    }
    size_t sent = 0;
    if (takes) {
      ssize_t got;
      do {
        if (count == 1) {
          got = send(client->fd, bytes[0].iov_base, bytes[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        } else {
          struct msghdr message = {.msg_iov = bytes, .msg_iovlen = (size_t)count};
          got = sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
      } while (got < 0 && errno == EINTR);
      if (got < 0 && errno != EAGAIN) {
        close_client(front, client);
        return;
      }
      sent = got < 0 ? 0 : (size_t)got;
      client->sent += (uint32_t)sent;
      takes = sent == length;
    }
    for (int i = 0; i < count && !takes; i++) {
      size_t skipped = sent < bytes[i].iov_len ? sent : bytes[i].iov_len;
      sent -= skipped;
      if (skipped == bytes[i].iov_len) continue;
      if (!pending_add(&client->pending, (uint8_t *)bytes[i].iov_base + skipped, bytes[i].iov_len - skipped)) {
        close_client(front, client);
        return;
      }
    }
  }
  if (client->fd < 0 || takes) return;
  if (!client->slow) report(front, client);
  watch(front, client);
}

static void send_all(struct front *front) {
  for (int i = 0; i < front->dirty_count; i++) {
    struct client *client = front->dirty[i];
    if (client->first != -1 && client->fd >= 0) send_pieces(front, client);
    client->first = client->last = -1;
    if (client->fd < 0) free_client(client);
  }
  front->dirty_count = front->piece_count = 0;
}

/* ── orders ──────────────────────────────────────────────────────────────────────────────────────────────────────── */

/* All pieces of a client are sent before anything else is done with it, so it is in the dirty list at most once. */
static void add_piece(struct front *front, struct client *client, const struct record *record) {
  int at = front->piece_count++;
  front->pieces[at] = (struct piece){.bytes = {record->bytes, record->length}, .next = -1};
  if (client->first == -1) {
    client->first = at;
    front->dirty[front->dirty_count++] = client;
  } else {
    front->pieces[client->last].next = at;
  }
  client->last = at;
}

static void stop_listening(struct front *front) {
  if (front->listener < 0) return;
  close_watched(front, front->listener);
  front->listener = -1;
}

static void order(struct front *front, const struct record *record) {
  if (record->kind == LIMIT) {
    memcpy(&front->most, record->bytes, sizeof front->most);
    return;
  }
  if (record->kind == CLOSE) {
    stop_listening(front);
    front->closing = true;
    emit_over(front);
    return;
  }
  struct client *client = find(front, record->id);
  /* The client was closed meanwhile. */
  if (client == NULL) return;
  if (record->kind == WRITE) {
    if (!client->ending && !client->closing) add_piece(front, client, record);
    return;
  }
  /* All other orders are rare, and follow earlier writes. */
  send_all(front);
  client = find(front, record->id);
  if (client == NULL) return;
  switch (record->kind) {
    case PAUSE:
    case RESUME:
      client->paused = record->kind == PAUSE;
      watch(front, client);
      if (client->fd < 0) free_client(client);
      break;
    case END:
    case DESTROY_SOON:
      client->ending = true;
      client->closing |= record->kind == DESTROY_SOON;
      if (!after_last(front, client)) free_client(client);
      break;
    case DESTROY:
      close_client(front, client);
      free_client(client);
      break;
  }
}

/* Carries out the orders of the sequencing thread; false if there is no room for the records about them. */
static bool take_orders(struct front *front) {
  struct record record;
  for (;;) {
    uint32_t written = ring_load(&front->in, RING_WRITTEN);
    if (written == front->in.at) return true;
    if (!has_room(front)) return false;
    for (int i = 0; i < ORDERS && ring_take(&front->in, written, &record); i++) order(front, &record);
    send_all(front);
    ring_store(&front->in, RING_READ, front->in.at);
  }
}

/* ── what sockets bring ──────────────────────────────────────────────────────────────────────────────────────────── */

static void read_client(struct front *front, struct client *client) {
  uint32_t most;
  uint8_t *room = ring_room(&front->out, LEAST_READ, &most);
  uint32_t free = ring_free(&front->out);
  /* RESERVE is kept free for other records: epoll reports the client again. */
  if (room == NULL || free < RESERVE + RING_RECORD + LEAST_READ) return;
  if (most > free - RESERVE - RING_RECORD) most = free - RESERVE - RING_RECORD;
  ssize_t got = recv(client->fd, room, most, MSG_DONTWAIT);
  if (got > 0) {
    ring_put(&front->out, DATA, client->id, (uint32_t)got);
  } else if (got == 0) {
    client->ended = true;
    emit(front, ENDED, client->id, NULL, 0);
    if (client->shut) close_client(front, client);
    else watch(front, client);
  } else if (errno != EAGAIN && errno != EINTR) {
    close_client(front, client);
  }
}

static void on_client(struct front *front, struct client *client, uint32_t events) {
  if ((events & EPOLLOUT) != 0 || ((events & (EPOLLERR | EPOLLHUP)) != 0 && (client->watched & EPOLLIN) == 0))
    drain(front, client);
  if (client->fd >= 0 && (client->watched & EPOLLIN) != 0 && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
    read_client(front, client);
  if (client->fd < 0) free_client(client);
}

static void set(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof value); }

/* `"key":"address","keyPort":port`, as the properties of `net.Socket`. */
static int address_text(char *to, size_t size, const char *key, const struct sockaddr_storage *address) {
  char text[INET6_ADDRSTRLEN] = "";
  uint16_t port;
  if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
    port = ntohs(six->sin6_port);
  } else {
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
    port = ntohs(four->sin_port);
  }
  return snprintf(to, size, "\"%sAddress\":\"%s\",\"%sPort\":%u", key, text, key, port);
}

static void opened(struct front *front, int fd, const struct sockaddr_storage *remote) {
  struct client *client = new_client(front, fd);
  if (client == NULL) {
    close(fd);
    return;
  }
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_ALIVE_S);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 10);
  struct sockaddr_storage local = {0};
  socklen_t size = sizeof local;
  getsockname(fd, (struct sockaddr *)&local, &size);
  char remote_text[128], local_text[128], text[260];
  address_text(remote_text, sizeof remote_text, "remote", remote);
  address_text(local_text, sizeof local_text, "local", &local);
  int length = snprintf(text, sizeof text, "{%s,%s}", remote_text, local_text);
  emit(front, OPENED, client->id, text, (uint32_t)length);
  watch(front, client);
  if (client->fd < 0) free_client(client);
}

/* If no descriptor is free, a client that cannot be accepted would be reported repeatedly: it is closed instead. */
static void drop_one(struct front *front) {
  if (front->spare >= 0) close(front->spare);
  int fd = accept4(front->listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd >= 0) close(fd);
  front->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
  emit(front, DROPPED, 0, NULL, 0);
}

static void accept_clients(struct front *front) {
  for (int i = 0; i < ACCEPTS && front->listener >= 0; i++) {
    struct sockaddr_storage remote = {0};
    socklen_t size = sizeof remote;
    int fd = accept4(front->listener, (struct sockaddr *)&remote, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE) drop_one(front);
      if (errno != ECONNABORTED && errno != EINTR) return;
    } else if (front->count >= front->most) {
      close(fd);
      emit(front, DROPPED, 0, NULL, 0);
    } else {
      opened(front, fd, &remote);
    }
  }
}

/* @param timeout in ms; -1: until there is an event */
static void read_sockets(struct front *front, int timeout) {
  struct epoll_event events[EVENTS];
  int count = epoll_wait(front->epoll, events, EVENTS, timeout);
  for (int i = 0; i < count; i++) {
    void *what = events[i].data.ptr;
    if (what == &BELL) drain_eventfd(front->event_in);
    else if (what == &LISTENER) accept_clients(front);
    else on_client(front, what, events[i].events);
  }
  ring_publish(&front->out);
}

/* ── turns ───────────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Whether the ring has records that the sequencing thread has not taken. */
static bool has_news(struct front *front) {
  ring_publish(&front->out);
  return ring_load(&front->out, RING_READ) != front->out.at;
}

/* On the sequencing thread there is no sleep: it is asked to look at once, and sends everything that it has written. */
static bool after_turn(struct front *front) {
  ring_store(&front->in, RING_ASLEEP, 1);
  bool has_room = ring_lower(&front->in, RING_FULL);
  return has_news(front) || has_room;
}

bool front_send(struct front *front) {
  take_orders(front);
  return after_turn(front);
}

bool front_turn(struct front *front) {
  if (take_orders(front) && has_room(front)) read_sockets(front, 0);
  return after_turn(front);
}

/* Waits until the sequencing thread has made room, and rings. */
static void await_room(struct front *front) {
  struct pollfd bell = {.fd = front->event_in, .events = POLLIN};
  poll(&bell, 1, -1);
  drain_eventfd(front->event_in);
}

static void *run(void *data) {
  struct front *front = data;
  while (!__atomic_load_n(&front->stop, __ATOMIC_SEQ_CST)) {
    bool has_space = take_orders(front) && has_room(front);
    bool freed = ring_lower(&front->in, RING_FULL);
    if ((has_news(front) && ring_lower(&front->out, RING_ASLEEP)) || freed) signal_eventfd(front->event_out);
    if (!has_space) {
      await_room(front);
      continue;
    }
    read_sockets(front, ring_sleeps(&front->in) ? -1 : 0);
    ring_store(&front->in, RING_ASLEEP, 0);
  }
  return NULL;
}

int front_run(struct front *front, const char *name) {
  ring_store(&front->in, RING_ASLEEP, 0);
  /* Only the sequencing thread handles signals. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int problem = pthread_create(&front->thread, NULL, run, front);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (problem != 0) return -problem;
  front->running = true;
  pthread_setname_np(front->thread, name);
  return 0;
}

/* Takes over a listening socket of its own. */
static int accept_from(struct front *front, int listener, uint32_t most_clients) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &LISTENER};
  if (epoll_ctl(front->epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
    int problem = errno;
    close(listener);
    return -problem;
  }
  front->listener = listener;
  front->most = most_clients;
  return 0;
}

int front_listen_on(struct front *front, int listener, uint32_t most_clients) {
  int own = fcntl(listener, F_DUPFD_CLOEXEC, 0);
  return own < 0 ? -errno : accept_from(front, own, most_clients);
}

int front_listen_at(struct front *front, const char *address, uint16_t port, uint32_t most_clients) {
  struct sockaddr_storage at = {0};
  struct sockaddr_in *four = (struct sockaddr_in *)&at;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)&at;
  socklen_t size;
  if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
    at.ss_family = AF_INET;
    four->sin_port = htons(port);
    size = sizeof *four;
  } else if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
    at.ss_family = AF_INET6;
    six->sin6_port = htons(port);
    size = sizeof *six;
  } else {
    return -EINVAL;
  }
  int listener = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return -errno;
  set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  set(listener, SOL_SOCKET, SO_REUSEPORT, 1);
  if (at.ss_family == AF_INET6) set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, BACKLOG) < 0) {
    int problem = errno;
    close(listener);
    return -problem;
  }
  return accept_from(front, listener, most_clients);
}

static void close_fd(int *fd) {
  if (*fd > 0) close(*fd);
  *fd = -1;
}

void front_stop(struct front *front) {
  if (front->running) {
    __atomic_store_n(&front->stop, true, __ATOMIC_SEQ_CST);
    front_ring(front);
    pthread_join(front->thread, NULL);
    front->running = false;
  }
  for (uint32_t place = 0; place < front->places; place++) {
    struct client *client = front->clients[place];
    if (client == NULL) continue;
    close(client->fd);
    free_client(client);
  }
  free(front->clients);
  front->clients = NULL;
  front->places = front->count = 0;
  close_fd(&front->listener);
  close_fd(&front->epoll);
  close_fd(&front->event_in);
  close_fd(&front->event_out);
  close_fd(&front->spare);
}

void front_free(struct front *front) {
  free(front->memory_in);
  free(front->memory_out);
  free(front);
}
