/**
 * `npm run drill:failover`: three KeyDB hosts under Sentinel are booted on this machine and set up by the playbooks of
 * production; clients count acknowledged writes, and the primary fails in every way. Exit codes: 0 nothing that was
 * acknowledged after a promotion is lost, and there were never two writers (with --strict: nothing at all is lost); 1
 * something was; 2 something is missing, or wrong usage; 130 Ctrl-C.
 */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';
import { Hosts } from '../../rehearsal/hosts/hosts.js';
import { prepareImage } from '../../rehearsal/hosts/image.js';
import { keydbServer, missing } from '../../rehearsal/needs.js';
import { changedTasks, Playbooks, prepareAnsible } from '../../rehearsal/playbooks.js';
import { CommandFailed } from '../../rehearsal/run.js';
import { onStop } from '../../../shadow-proxy/src/io/signals.js';
import { Crew } from './crew.js';
import { FAULTS, type Field } from './faults.js';
import { render } from './report.js';
import { playRound, settled, type Look, type Outcome } from './rounds.js';
import { CLIENT, NODES, PORTS, TARGET, writeScene } from './scene.js';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'redis-to-keydb');
/** Clients at each place: beside HAProxy on a host of its own, and on every KeyDB host. */
const CLIENTS = { [CLIENT]: 4, node: 1 };

interface Options {
  readonly rounds: number;
  readonly fault: readonly string[];
  readonly strict: boolean;
  readonly json: boolean;
  readonly log: string;
}

const names = FAULTS.map(({ name }) => name);
const options = new Command('drill:failover')
  .description(
    'The primary of a KeyDB target fails in every way while clients count; root on Linux. Nothing is left behind.',
  )
  .option('--rounds <n>', 'rounds of each fault', whole, 20)
  .option('--fault <name...>', `only these: ${names.join(', ')}`, known)
  .option('--strict', 'min-replicas-to-write 1, an AOF with appendfsync always, and WAIT 1 after each write', false)
  .option('--json', 'print JSON, with every round', false)
  .option('--log <file>', 'what every command said', join(ROOT, 'dist', 'drill-failover.log'))
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .parse()
  .opts<Options>();

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const lacks = await missing();
if (lacks.length > 0) {
  say(`The drill needs:\n${lacks.map((each) => `  ${each}`).join('\n')}`);
  process.exitCode = 2;
} else {
  process.exitCode = await drill();
}

async function drill(): Promise<number> {
  const stop = new AbortController();
  const forget = onStop(
    () => stop.abort(),
    () => process.exit(130),
  );
  const crew = new Crew();
  const outcomes: Outcome[] = [];
  let hosts: Hosts | null = null;
  let broken: string | null = null;
  try {
    mkdirSync(CACHE, { recursive: true });
    const image = await prepareImage(CACHE, options.log, say);
    const ansible = await prepareAnsible(options.log);
    hosts = new Hosts(mkdtempSync('/var/tmp/drill-'), image, options.log);
    const booted = await hosts.up([...NODES, CLIENT]);
    const ssh = { key: hosts.key, options: hosts.sshOptions.slice(2) };
    const scene = writeScene(hosts.directory, booted, ssh, (await keydbServer())!, options.strict);
    const playbooks = new Playbooks(ansible, hosts, scene, { log: options.log, signal: stop.signal });
    const field: Field = { hosts, nodes: NODES.map((name) => hosts!.host(name)) };
    say(`${booted.length} hosts are up; keydb.yml sets up KeyDB, Sentinel and HAProxy …`);
    await playbooks.play('keydb');
    const password = scene.secret('keydb-admin');
    const look = lookAt(field, password, scene.secret('keydb-haproxy'));
    await settled(look, field);
    const login = { username: 'admin', password };
    crew.send(hosts.network.control, {
      what: 'watch',
      login,
      nodes: field.nodes.map(({ address }) => ({ host: address, port: PORTS.keydb })),
    });
    for (const host of booted) {
      crew.send(hosts.network.namespace(host.index), {
        what: 'count',
        login,
        place: host.name,
        clients: host.name === CLIENT ? CLIENTS[CLIENT] : CLIENTS.node,
        haproxy: { host: host.address, port: PORTS.writer },
        wait: options.strict,
      });
    }
    const beside = (client: string): boolean => client.startsWith(`drill:${CLIENT}:`);
    for (const fault of FAULTS.filter(({ name }) => options.fault?.includes(name) ?? true)) {
      for (let round = 0; round < options.rounds; round++) {
        stop.signal.throwIfAborted();
        const outcome = await playRound(field, crew, look, fault, round, beside);
        outcomes.push(outcome);
        say(
          `${fault.name} ${round + 1}: ${outcome.acknowledged} acknowledged, ${outcome.lost} lost, ${outcome.silenceMs.toFixed(0)} ms without an answer, ${outcome.promotions} promotion(s)`,
        );
      }
    }
    const again = await playbooks.play('keydb');
    const changed = changedTasks(again.output);
    if (changed.length > 0) broken = `a run of keydb.yml after the failovers changed something: ${changed.join(', ')}`;
  } catch (error) {
    if (!stop.signal.aborted) broken = (error as Error).message;
  } finally {
    crew.end();
    await hosts?.down();
    forget();
  }
  if (stop.signal.aborted) return 130;
  const report = render(outcomes, options.strict, broken);
  process.stdout.write(
    options.json ? `${JSON.stringify({ strict: options.strict, outcomes, broken }, null, 2)}\n` : report.text,
  );
  return report.holds ? 0 : 1;
}

/** Asks every node and every Sentinel, over ssh on its own host, so that a cut of the network is no answer. */
function lookAt({ hosts, nodes }: Field, admin: string, haproxy: string): Look {
  const ask = `
import sys; sys.path.insert(0, "/usr/local/lib/keydb")
from resp import Server
me = sys.argv[1]
with Server(me, ${PORTS.keydb}, "admin", "${admin}", timeout=2) as s: i = s.info()
with Server(me, ${PORTS.sentinel}, "haproxy", "${haproxy}", timeout=2) as s: n = s.call("SENTINEL", "get-master-addr-by-name", "${TARGET}")
print(i["role"], i.get("master_link_status", "-"), n[0] if n else "-")`;
  return async () => {
    const seen = await Promise.all(
      nodes.map(async (node) => {
        try {
          const { stdout } = await hosts.ssh(node.name, `timeout 5 python3 - ${node.address}`, { input: ask });
          const [role, link, named] = stdout.trim().split(' ');
          return { node, role, link, named };
        } catch (error) {
          if (error instanceof CommandFailed) return { node, role: '', link: '', named: '' };
          throw error;
        }
      }),
    );
    const votes = (address: string): number => seen.filter(({ named }) => named === address).length;
    const named = nodes.map(({ address }) => address).find((address) => votes(address) > nodes.length / 2) ?? null;
    return {
      primaries: seen.filter(({ role }) => role === 'master').map(({ node }) => node),
      inStep: seen.filter(({ role, link }) => role === 'slave' && link === 'up').map(({ node }) => node),
      named,
    };
  };
}

function whole(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It takes a whole number from 1.');
  return Number(text);
}

function known(text: string, before: readonly string[] = []): string[] {
  if (!names.includes(text)) throw new InvalidArgumentError(`It takes ${names.join(', ')}.`);
  return [...before, text];
}
