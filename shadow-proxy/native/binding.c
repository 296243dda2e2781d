/*
 * The front for JavaScript; src/front/native.ts has the types. Every function runs on the sequencing thread.
 *
 * Node's event loop polls the front's descriptor, and calls `onRing` when the ring has records. Node-API cannot poll a
 * descriptor. So libuv's functions are declared below: its ABI is that of Node itself.
 */
#define NAPI_VERSION 8
#include <errno.h>
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

/* Declared as in uv.h, 1.19 or newer. */
typedef struct uv_loop_s uv_loop_t;
typedef struct uv_handle_s uv_handle_t;
extern size_t uv_handle_size(int type);
extern void uv_handle_set_data(uv_handle_t *handle, void *data);
extern void *uv_handle_get_data(const uv_handle_t *handle);
extern int uv_poll_init(uv_loop_t *loop, uv_handle_t *handle, int fd);
extern int uv_poll_start(uv_handle_t *handle, int events, void (*callback)(uv_handle_t *, int status, int events));
extern void uv_close(uv_handle_t *handle, void (*callback)(uv_handle_t *));
enum { UV_POLL = 8, UV_READABLE = 1 };

struct binding {
  struct front *front;
  bool threaded, stopped;
  napi_env env;
  napi_ref look;
  napi_async_context context;
  napi_async_cleanup_hook_handle cleanup;
  uv_handle_t *poll;
  /* How many parts of the program use the memory of the rings: JavaScript twice, and this file. */
  int owners;
};

static void disown(struct binding *binding) {
  if (--binding->owners > 0) return;
  front_free(binding->front);
  free(binding);
}

static void ring_collected(napi_env env, void *memory, void *binding) {
  (void)env;
  (void)memory;
  disown(binding);
}

static napi_value throw_errno(napi_env env, const char *what, int problem) {
  char text[160];
  snprintf(text, sizeof text, "%s: %s", what, strerror(problem));
  const char *code = problem == EADDRINUSE      ? "EADDRINUSE"
                     : problem == EADDRNOTAVAIL ? "EADDRNOTAVAIL"
                     : problem == EACCES        ? "EACCES"
                     : problem == EMFILE        ? "EMFILE"
                                                : "ESYSTEM";
  napi_throw_error(env, code, text);
  return NULL;
}

static struct binding *bound(napi_env env, napi_callback_info info, size_t count, napi_value *args) {
  void *binding = NULL;
  napi_value all[6];
  size_t given = 6;
  napi_get_cb_info(env, info, &given, all, NULL, NULL);
  for (size_t i = 0; i < count; i++) args[i] = all[i + 1];
  if (given != count + 1 || napi_get_value_external(env, all[0], &binding) != napi_ok || ((struct binding *)binding)->stopped) {
    napi_throw_error(env, "ESTOPPED", "the front was stopped");
    return NULL;
  }
  return binding;
}

/* ── the event loop ──────────────────────────────────────────────────────────────────────────────────────────────── */

static void look(struct binding *binding) {
  napi_env env = binding->env;
  napi_handle_scope scope;
  napi_value function, global;
  napi_open_handle_scope(env, &scope);
  napi_get_reference_value(env, binding->look, &function);
  napi_get_global(env, &global);
  if (napi_make_callback(env, binding->context, global, function, 0, NULL, NULL) == napi_pending_exception) {
    napi_value problem;
    napi_get_and_clear_last_exception(env, &problem);
    napi_fatal_exception(env, problem);
  }
  napi_close_handle_scope(env, scope);
}

static void polled(uv_handle_t *poll, int status, int events) {
  (void)status;
  (void)events;
  struct binding *binding = uv_handle_get_data(poll);
  if (binding->stopped) return;
  if (binding->threaded) {
    front_heard(binding->front);
    look(binding);
  } else if (front_turn(binding->front)) {
    look(binding);
  }
}

static void poll_closed(uv_handle_t *poll) {
  struct binding *binding = uv_handle_get_data(poll);
  free(poll);
  napi_remove_async_cleanup_hook(binding->cleanup);
  disown(binding);
}

static void stop(struct binding *binding) {
  if (binding->stopped) return;
  binding->stopped = true;
  napi_async_destroy(binding->env, binding->context);
  napi_delete_reference(binding->env, binding->look);
  /* Stop polling before the descriptor is closed. */
  uv_close(binding->poll, poll_closed);
  front_stop(binding->front);
}

static void environment_ends(napi_async_cleanup_hook_handle handle, void *binding) {
  (void)handle;
  stop(binding);
}

/* ── functions ───────────────────────────────────────────────────────────────────────────────────────────────────── */

static napi_value ring_buffer(napi_env env, struct binding *binding, void *memory, uint32_t bytes) {
  napi_value buffer;
  binding->owners++;
  napi_create_external_arraybuffer(env, memory, bytes, ring_collected, binding, &buffer);
  return buffer;
}

/* open(ringBytes, threaded, look) → { handle, out, in }: the rings as the sequencing thread sees them */
static napi_value js_open(napi_env env, napi_callback_info info) {
  napi_value args[3], result, handle, name;
  size_t count = 3;
  uint32_t bytes;
  bool threaded;
  napi_get_cb_info(env, info, &count, args, NULL, NULL);
  if (count != 3 || napi_get_value_uint32(env, args[0], &bytes) != napi_ok ||
      napi_get_value_bool(env, args[1], &threaded) != napi_ok) {
    napi_throw_type_error(env, NULL, "open(ringBytes, threaded, look)");
    return NULL;
  }
  struct binding *binding = calloc(1, sizeof *binding);
  struct front *front = front_new(bytes);
  uv_handle_t *poll = malloc(uv_handle_size(UV_POLL));
  if (binding == NULL || front == NULL || poll == NULL) return throw_errno(env, "cannot make a front", errno);
  *binding = (struct binding){.front = front, .threaded = threaded, .env = env, .poll = poll, .owners = 1};
  napi_create_reference(env, args[2], 1, &binding->look);
  napi_create_string_utf8(env, "front", NAPI_AUTO_LENGTH, &name);
  napi_async_init(env, NULL, name, &binding->context);
  uv_loop_t *loop;
  napi_get_uv_event_loop(env, (struct uv_loop_s **)&loop);
  uv_poll_init(loop, poll, threaded ? front_event_fd(front) : front_poll_fd(front));
  uv_handle_set_data(poll, binding);
  uv_poll_start(poll, UV_READABLE, polled);
  napi_add_async_cleanup_hook(env, environment_ends, binding, &binding->cleanup);
  uint32_t size = 256 + bytes;
  napi_create_object(env, &result);
  napi_create_external(env, binding, NULL, NULL, &handle);
  napi_set_named_property(env, result, "handle", handle);
  napi_set_named_property(env, result, "in", ring_buffer(env, binding, front_ring_out(front), size));
  napi_set_named_property(env, result, "out", ring_buffer(env, binding, front_ring_in(front), size));
  return result;
}

/* Called when the front listens: starts its thread, if it has one. */
static napi_value listening(napi_env env, struct binding *binding, int problem) {
  if (problem < 0) return throw_errno(env, "listen", -problem);
  if (binding->threaded) problem = front_run(binding->front, "front");
  if (problem < 0) return throw_errno(env, "cannot start a thread", -problem);
  return NULL;
}

/* listenOn(handle, descriptor, mostClients): accepts from a listening socket, which also stays the caller's */
static napi_value js_listen_on(napi_env env, napi_callback_info info) {
  napi_value args[2];
  struct binding *binding = bound(env, info, 2, args);
  int32_t listener;
  uint32_t most;
  if (binding == NULL) return NULL;
  if (napi_get_value_int32(env, args[0], &listener) != napi_ok || napi_get_value_uint32(env, args[1], &most) != napi_ok)
    return napi_throw_type_error(env, NULL, "listenOn(handle, descriptor, mostClients)"), NULL;
  return listening(env, binding, front_listen_on(binding->front, listener, most));
}

/* listenAt(handle, address, port, mostClients): listens at a numeric address that other fronts use, too */
static napi_value js_listen_at(napi_env env, napi_callback_info info) {
  napi_value args[3];
  struct binding *binding = bound(env, info, 3, args);
  char address[64];
  uint32_t port, most;
  if (binding == NULL) return NULL;
  if (napi_get_value_string_utf8(env, args[0], address, sizeof address, NULL) != napi_ok ||
      napi_get_value_uint32(env, args[1], &port) != napi_ok || napi_get_value_uint32(env, args[2], &most) != napi_ok)
    return napi_throw_type_error(env, NULL, "listenAt(handle, address, port, mostClients)"), NULL;
  return listening(env, binding, front_listen_at(binding->front, address, (uint16_t)port, most));
}

/* send(handle) → whether to look into the ring: sends everything that was written, or wakes the thread that does */
static napi_value js_send(napi_env env, napi_callback_info info) {
  struct binding *binding = bound(env, info, 0, NULL);
  if (binding == NULL) return NULL;
  bool news = false;
  if (binding->threaded) front_ring(binding->front);
  else news = front_send(binding->front);
  napi_value result;
  napi_get_boolean(env, news, &result);
  return result;
}

/* stop(handle): closes every socket */
static napi_value js_stop(napi_env env, napi_callback_info info) {
  struct binding *binding = bound(env, info, 0, NULL);
  if (binding != NULL) stop(binding);
  return NULL;
}

NAPI_MODULE_INIT() {
  const napi_property_descriptor functions[] = {
      {"open", NULL, js_open, NULL, NULL, NULL, napi_default, NULL},
      {"listenOn", NULL, js_listen_on, NULL, NULL, NULL, napi_default, NULL},
      {"listenAt", NULL, js_listen_at, NULL, NULL, NULL, napi_default, NULL},
      {"send", NULL, js_send, NULL, NULL, NULL, napi_default, NULL},
      {"stop", NULL, js_stop, NULL, NULL, NULL, napi_default, NULL},
  };
  napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions);
  return exports;
}
