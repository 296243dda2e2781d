/** Ansible against the rehearsal's hosts, from the controller's namespace. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run, type Ran, type RunOptions } from './run.js';
import type { Hosts } from './hosts/hosts.js';
import type { Scene } from './scene.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const ANSIBLE = join(ROOT, 'ansible');

/** The directory of Ansible's programs: a virtual environment outside the repository, made where it is not there. */
export async function prepareAnsible(log: string): Promise<string> {
  return (await run(['sh', join(ANSIBLE, 'environment.sh')], { log })).stdout.trim();
}

export interface Recap {
  /** Tasks that changed something, by host. */
  readonly changed: Readonly<Record<string, number>>;
  readonly output: string;
}

export class Playbooks {
  constructor(
    private readonly programs: string,
    private readonly hosts: Hosts,
    private readonly scene: Scene,
    private readonly options: RunOptions,
  ) {}

  /** Runs one of `ansible/playbooks`, or a file. @throws {CommandFailed} with the end of what Ansible said */
  async play(
    playbook: string,
    variables: Readonly<Record<string, unknown>> = {},
    ...more: readonly string[]
  ): Promise<Recap> {
    const file = playbook.includes('/') ? playbook : join(ANSIBLE, 'playbooks', `${playbook}.yml`);
    const extra = JSON.stringify({ migration_plan_file: this.scene.plan, ...variables });
    const command = [
      join(this.programs, 'ansible-playbook'),
      '-i',
      this.scene.inventory,
      '-e',
      `@${this.scene.passwords}`,
      '-e',
      extra,
      ...more,
      file,
    ];
    const { stdout } = await this.#run(command);
    return { changed: changedOf(stdout), output: stdout };
  }

  /** The checks of `verification/rehearsal/checks`, on the hosts, by testinfra. */
  async testinfra(directory: string): Promise<string> {
    const names = this.scene.hosts.map((name) => `ssh://${name}`).join(',');
    const command = [
      join(this.programs, 'py.test'),
      '-q',
      '-p',
      'no:cacheprovider',
      `--hosts=${names}`,
      `--ssh-config=${this.scene.sshConfig}`,
      directory,
    ];
    return (await this.#run(command, [0, 1])).stdout;
  }

  #run(command: readonly string[], accept?: readonly number[]): Promise<Ran> {
    const env = {
      ANSIBLE_CONFIG: join(ANSIBLE, 'ansible.cfg'),
      ANSIBLE_HOST_KEY_CHECKING: 'False',
      ANSIBLE_NOCOLOR: '1',
      REHEARSAL_INVENTORY: this.scene.inventory,
      REHEARSAL_PASSWORDS: this.scene.passwords,
      PYTHONDONTWRITEBYTECODE: '1',
      PATH: `${this.programs}:${process.env.PATH}`,
    };
    return run(this.hosts.network.inControl(command), { ...this.options, env, accept });
  }
}

/** Of Ansible's recap: `name : ok=3 changed=1 …` */
export function changedOf(output: string): Record<string, number> {
  const recap = output.slice(output.lastIndexOf('PLAY RECAP'));
  return Object.fromEntries(
    [...recap.matchAll(/^(\S+)\s+: ok=\d+\s+changed=(\d+)/gm)].map(([, host, changed]) => [host, Number(changed)]),
  );
}

/** Names of the tasks that changed something, each once, for people. */
export function changedTasks(output: string): string[] {
  const tasks = output.split(/^(?=TASK \[|RUNNING HANDLER \[|PLAY )/m).filter((part) => /^changed: /m.test(part));
  return [...new Set(tasks.map((part) => /\[(.*?)\]/.exec(part)?.[1] ?? ''))];
}
