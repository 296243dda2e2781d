/**
 * A native front whose `epoll_ctl` fails: the client that it was called for is closed, and does not wait forever.
 *
 * Needs real sockets: an epoll_ctl that fails in the native front.
 */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { needs } from '../../support/needs.js';
import { preload } from '../../support/preload.js';
import { withServers } from '../../support/servers.js';
import { until } from '../../support/shard.js';
import { Wire } from '../../support/wire.js';
import { planFor, start, status } from '../cli/running.js';

/** Where the file is there, the native module's calls that begin or change what is watched fail as on a full system. */
const FAILING = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event) {
  Dl_info caller;
  if (what != EPOLL_CTL_DEL && dladdr(__builtin_return_address(0), &caller) && caller.dli_fname &&
      strstr(caller.dli_fname, "front.node") && access(getenv("EPOLL_FAILS_FILE"), F_OK) == 0) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_epoll_ctl, epoll, what, fd, event);
}
`;

for (const threads of [0, 1])
  test(`a client whose socket cannot be watched is closed, with ${threads} front threads`, async (t) => {
    if (!(await needs(t, 'native'))) return;
    const failing = await preload(t, FAILING);
    if (failing === null) return;
    const file = join(failing.directory, 'fails');
    await withServers(async (servers) => {
      const plan = await planFor(servers, (each) => (each.threads = threads));
      const { port, admin } = await start(t, plan, undefined, [], { ...failing.env, EPOLL_FAILS_FILE: file });
      const clients = async (): Promise<number> => (await status(admin))[0].clients;
      const before = await Wire.open({ port });
      assert.equal(await before.ask('PING'), '+PONG');
      writeFileSync(file, '');
      const refused = await Wire.open({ port });
      refused.send('PING');
      await until(() => refused.ended);
      assert.deepEqual(refused.unread, []);
      await until(async () => (await clients()) === 1);
      rmSync(file);
      assert.equal(await before.ask('PING'), '+PONG');
      const after = await Wire.open({ port });
      assert.equal(await after.ask('PING'), '+PONG');
      before.destroy();
      after.destroy();
    });
  });
