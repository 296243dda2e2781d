/**
 * Which part reacts to which event of a shard: for each event, the parts that react to it, one after the other in this
 * order. A reaction that relies on an earlier one says so.
 */
import { unixMs } from '../io/clock.js';
import { startMirrors } from './connections.js';
import type { Parts } from './parts.js';

export function connect(parts: Parts): void {
  connectSuspects(parts);
  connectServers(parts);
  connectStages(parts);
  logServers(parts);
}

function connectSuspects(parts: Parts): void {
  const { events, journal, keeper, deferred, fieldTtls, repairer, clients, trust, servers } = parts;
  events.on('suspect', (suspect) => {
    // The journal has the key before a repair of it begins.
    journal.noteSuspect(suspect);
    trust.since?.marked(suspect);
    repairer.marked(suspect);
  });
  events.on('suspectCleared', (suspect) => deferred.cleared(suspect));
  events.on('carry', () => {
    keeper.carry();
    fieldTtls?.carry();
    for (const blocked of clients.blocked) blocked.note();
  });
  events.on('connectionClosed', () => repairer.wake());
  events.on('unfrozen', () => repairer.wake());
  events.on('mirror', (_side, up) => up && repairer.wake());
  events.on('database', (side, _db, why) => {
    if (why === null) repairer.wake();
    // The limit decides what clients are refused: it must include what the mirror's server refuses now.
    servers[side].findDatabaseLimit().catch(() => undefined);
  });
}

function connectServers(parts: Parts): void {
  const { events, keeper, listener, admitted, trust, clocks, logins, monitor, flipper, failover, fence } = parts;
  events.on('identified', (server) => {
    if (server.side === 'target') admitted.targetSeen(false);
    keeper.rememberSoon();
    fence.seen(server);
  });
  events.on('replaced', (server, change) => {
    fence.seen(server);
    if (server.side === 'target') admitted.targetSeen(true);
    trust.replaced(server, change);
  });
  events.on('demoted', (server) => trust.demoted(server));
  events.on('distrusted', (side) => listener.wasOpened && failover.replaced(side));
  events.on('down', (side) => {
    // A stage change that leaves the server stops waiting for it before a failover asks for another change.
    flipper.down(side);
    failover.down(side, monitor.silentMs(side));
  });
  events.on('clockRead', () => clocks.compare());
  events.on('clockSet', (server, byMs) => clocks.set(server, byMs));
  events.on('passwordNeeded', (server) => logins.changed(server));
}

function connectStages(parts: Parts): void {
  const { events, sequencer, trust, collector, fieldTtls, automatic, series, snapshot } = parts;
  events.on('moved', () => {
    startMirrors(sequencer);
    trust.moved();
    collector.stagesMoved();
    void collector.rememberUsers();
    fieldTtls?.stagesMoved();
  });
  events.on('sampled', (latest, workloads) => {
    // The snapshot shows what the guard has found in this sample.
    automatic.sampled(workloads);
    series.add(unixMs(), snapshot(), latest);
  });
}

function logServers({ events, logger }: Parts): void {
  events.on('mirror', (mirror, up) =>
    logger.info({ mirror, up }, up ? 'the mirror is connected' : 'the mirror is disconnected'),
  );
  events.on('database', (side, db, why) => {
    if (why === null) logger.info({ server: side, db }, 'the server lets the proxy select the database again');
    else
      logger.error(
        { server: side, db, why },
        'the server does not let the proxy select the database: keys that are written there are suspects',
      );
  });
  events.on('usable', ({ side, problem }) => {
    if (problem === null) logger.info({ server: side }, 'the server is usable again');
    else logger.error({ server: side, problem }, 'the server cannot be used');
  });
  events.on('identified', ({ side, traits: { missing, newer } }) => {
    if (newer !== null)
      logger.warn(
        { server: side, version: newer.name, rdbVersion: newer.rdbVersion },
        `the ${side} is ${newer.evidence}; the gate servers is closed until promote --accept-version`,
      );
    for (const { name, without } of missing)
      logger.warn({ server: side, command: name }, `the server refuses ${name} to the proxy: ${without}`);
  });
  events.on('full', ({ side }) =>
    logger.warn(
      { server: side },
      'the server is out of memory and refuses writes: the refused keys are suspects, and are repaired when memory is free (raise maxmemory)',
    ),
  );
}
