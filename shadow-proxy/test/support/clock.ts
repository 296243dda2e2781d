/**
 * A clock that a test can set, for a process of its own: a library, loaded before the others, that answers questions
 * for the time of day by the real clock plus what a file says. Steady clocks go on as they are. (libfaketime does not
 * get on with jemalloc.)
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { preload } from './preload.js';

const SOURCE = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long *offset;
__attribute__((constructor)) static void begin(void) {
  int fd = open(getenv("CLOCK_OFFSET_FILE"), O_RDONLY);
  void *at = fd < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) offset = at;
}
static long seconds(void) { return offset ? *offset : 0; }
int clock_gettime(clockid_t clock, struct timespec *ts) {
  int result = syscall(SYS_clock_gettime, clock, ts);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) ts->tv_sec += seconds();
  return result;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  tv->tv_sec = ts.tv_sec;
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *at) {
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  if (at) *at = ts.tv_sec;
  return ts.tv_sec;
}
`;

export interface SettableClock {
  /** For the process whose clock it is. */
  readonly env: NodeJS.ProcessEnv;
  /** Sets it so many seconds off the real one. */
  set(seconds: number): void;
}

/** Null, with the test skipped, where there is no C compiler. */
export async function settableClock(t: TestContext): Promise<SettableClock | null> {
  const loaded = await preload(t, SOURCE);
  if (loaded === null) return null;
  const file = join(loaded.directory, 'offset');
  const set = (seconds: number): void => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(seconds));
    // In place: it is mapped.
    writeFileSync(file, bytes, { flag: 'r+' });
  };
  writeFileSync(file, Buffer.alloc(8));
  return { set, env: { ...loaded.env, CLOCK_OFFSET_FILE: file } };
}
