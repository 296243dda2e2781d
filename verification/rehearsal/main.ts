/**
 * `npm run rehearsal`: the whole migration on hosts that are booted for it on this machine, by the playbooks that
 * production runs. Exits with 0 where everything held, 1 where something did not, 2 where something is missing, 130
 * after Ctrl-C; leaves nothing either way.
 */
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { onStop } from '../../shadow-proxy/src/io/signals.js';
import { Hosts } from './hosts/hosts.js';
import { prepareImage } from './hosts/image.js';
import { Load } from './load.js';
import { keydbServer, missing } from './needs.js';
import { Operator } from './operator.js';
import { Playbooks, prepareAnsible } from './playbooks.js';
import { run } from './run.js';
import { HOSTS, writeScene } from './scene.js';
import { live, retire, shadow, standUp, type Stage } from './story.js';
import { Timeline } from './timeline.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'redis-to-keydb');

const STAND_INS = `Stand-ins: the hosts are systemd-nspawn containers on this machine's kernel (kernel settings are not touched), their network is a bridge in a
namespace, their packages a local repository, KeyDB a binary of this machine, the names of an NLB the HAProxy of the load host. Grafana is in no
Debian repository: its files are written, and it does not run. Gates ask for a minute of evidence, not for a week.`;

const program = new Command('rehearsal')
  .description('The whole migration on hosts booted on this machine; root on Linux')
  .option('--log <file>', 'what every command said', join(ROOT, 'dist', 'rehearsal.log'));

const say = (text: string): void => void process.stdout.write(text);
const { log } = program.parse().opts<{ log: string }>();
const lacks = await missing();
if (lacks.length > 0) {
  process.stderr.write(`The rehearsal needs:\n${lacks.map((each) => `  ${each}\n`).join('')}`);
  process.exitCode = 2;
} else {
  process.exitCode = await rehearse();
}

async function rehearse(): Promise<number> {
  const stop = new AbortController();
  const forget = onStop(
    () => stop.abort(),
    () => process.exit(130),
  );
  say(`${STAND_INS}\n\n`);
  mkdirSync(CACHE, { recursive: true });
  let hosts: Hosts | null = null;
  let load: Load | null = null;
  const timeline = new Timeline(say);
  try {
    const image = await prepareImage(CACHE, log, (text) => timeline.say(text));
    const ansible = await prepareAnsible(log);
    hosts = new Hosts(mkdtempSync('/var/tmp/rehearsal-'), image, log);
    const archive = join(hosts.directory, 'kit.tar.gz');
    // The load of the rehearsal runs on a host, too.
    await run(['sh', join(ROOT, 'packaging', 'archive.sh'), archive, 'dist/verification/rehearsal/traffic'], { log });
    const booted = await hosts.up(HOSTS);
    timeline.say(`${booted.length} hosts are up: ${HOSTS.join(', ')}`);
    const ssh = { key: hosts.key, options: hosts.sshOptions.slice(2) };
    const scene = writeScene(hosts.directory, booted, ssh, {
      keydb: (await keydbServer())!,
      node: process.execPath,
      archive,
    });
    const options = { log, signal: stop.signal };
    load = new Load(hosts, scene, log);
    const stage: Stage = {
      hosts,
      load,
      timeline,
      signal: stop.signal,
      operator: new Operator(hosts, options),
      playbooks: new Playbooks(ansible, hosts, scene, options),
    };
    await standUp(
      stage,
      join(ROOT, 'verification', 'rehearsal', 'sources.yml'),
      join(ROOT, 'verification', 'rehearsal', 'checks'),
    );
    await shadow(stage);
    await live(stage);
    await retire(stage);
    leakless(timeline, scene.passwords);
  } catch (error) {
    if (!stop.signal.aborted) timeline.check('every step could be taken', false, (error as Error).message);
  } finally {
    load?.kill();
    await hosts?.down();
    forget();
  }
  if (stop.signal.aborted) {
    timeline.say('stopped; every host is gone');
    return 130;
  }
  say(
    `\n${timeline.verdict()}\nEvery host, namespace and mount is gone. What every command said: ${log}\n${STAND_INS}\n`,
  );
  return timeline.holds ? 0 : 1;
}

/** No password may stand in what the commands said. */
function leakless(timeline: Timeline, passwords: string): void {
  const secrets = readFileSync(passwords, 'utf8').match(/[0-9a-f]{36}/g) ?? [];
  const text = readFileSync(log, 'utf8');
  const leaked = new Set(secrets.filter((secret) => text.includes(secret)));
  timeline.check(
    'no password stands in any output',
    secrets.length > 0 && leaked.size === 0,
    `${new Set(secrets).size} looked for`,
  );
}
