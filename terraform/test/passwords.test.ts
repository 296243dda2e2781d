/** What stands in the state and in plans of the passwords that modules/secrets draws. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test, type TestContext } from 'node:test';
import { Environment, type Variables } from './changes/environment.js';
import { TERRAFORM } from './files.js';
import { onPath, run, type Program } from './program.js';
import { lacking, missing } from '../../shadow-proxy/test/support/needs.js';

/** As AWS would draw it. */
const PLANTED = 'planted-in-the-state-5d1f';
const PREFIX = { prefix: 'checkout', kms_key_arn: 'arn:aws:kms:eu-central-1:123456789012:key/k' };
const accepted = (...generations: string[]): Variables => ({
  passwords: { 'keydb-app': { use: generations[0], accept: generations } },
});

const program = process.env.TERRAFORM ?? onPath('terraform') ?? onPath('tofu');
const terraform: Program = [program ?? ''];

/** 1.11 of Terraform and of OpenTofu are the first with write-only arguments. */
async function knowsWriteOnly(): Promise<boolean> {
  const [, major, minor] = /v(\d+)\.(\d+)/.exec((await run(terraform, ['version'])).output) ?? [];
  return Number(major) > 1 || Number(minor) >= 11;
}

const MODULE = join(TERRAFORM, 'modules', 'secrets');

const open = (t: TestContext, directory = MODULE): Promise<Environment> =>
  Environment.open(
    t,
    terraform,
    { aws_secretsmanager_random_password: () => ({ random_password: PLANTED }) },
    directory,
  );

/** A copy of the module with its file for older versions. */
function overridden(t: TestContext): string {
  const copy = mkdtempSync(join(tmpdir(), 'terraform-secrets-'));
  t.after(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(MODULE, copy, { recursive: true });
  renameSync(join(copy, 'before_1_11_override.tf.example'), join(copy, 'before_1_11_override.tf'));
  return copy;
}

describe('passwords and the state', { skip: await missing('terraform') }, () => {
  let writeOnly = false;
  before(async () => (writeOnly = await knowsWriteOnly()));

  for (const store of ['secretsmanager', 'ssm']) {
    test(`${store}: a password is sent to AWS, and is in no plan and no state`, async (t) => {
      if (!writeOnly) return t.skip(lacking('write-only-arguments'));
      const secrets = await open(t);
      const first = { ...PREFIX, ...accepted('1'), store };
      const plan = await secrets.planText(first);
      await secrets.apply(first);
      const [{ value }, ...more] = secrets.cloud.sent;
      assert.match(String(value), /^[0-9a-f]{64}$/);
      assert.deepEqual(more, []);
      for (const text of [plan, secrets.stateText(), await secrets.planText(first)]) {
        assert.ok(!text.includes(String(value)));
        assert.ok(text.includes('keydb-app/1'), 'the text is that of the secrets');
      }
      assert.deepEqual(await secrets.plan(first), [], 'nothing is drawn anew');
    });

    test(`${store}: a second generation is another password, and leaves the first as it is`, async (t) => {
      if (!writeOnly) return t.skip(lacking('write-only-arguments'));
      const secrets = await open(t);
      await secrets.apply({ ...PREFIX, ...accepted('1'), store });
      const changes = await secrets.plan({ ...PREFIX, ...accepted('1', '2'), store });
      assert.ok(Array.isArray(changes) && changes.length > 0);
      assert.deepEqual(
        changes.filter(({ address, action }) => action !== 'create' || !address.includes('keydb-app/2')),
        [],
      );
      await secrets.apply({ ...PREFIX, ...accepted('1', '2'), store });
      const [one, two, ...more] = secrets.cloud.sent.map(({ value }) => String(value));
      assert.notEqual(one, two);
      assert.deepEqual(more, []);
      assert.ok(![one, two].some((value) => secrets.stateText().includes(value)));
    });

    test(`${store}: a password of in_state is in the state, and its next generation is not`, async (t) => {
      if (!writeOnly) return t.skip(lacking('write-only-arguments'));
      const secrets = await open(t);
      await secrets.apply({ ...PREFIX, ...accepted('1'), store, in_state: ['all'] });
      assert.ok(secrets.stateText().includes(PLANTED));
      assert.deepEqual(secrets.cloud.sent, []);
      const rotated = { ...PREFIX, ...accepted('1', '2'), store, in_state: ['keydb-app/1'] };
      await secrets.apply(rotated);
      assert.ok(secrets.stateText().includes(PLANTED), 'the first generation stays as it is');
      await secrets.apply({ ...PREFIX, ...accepted('2'), store });
      assert.ok(!secrets.stateText().includes(PLANTED), 'it goes with the first generation');
      assert.equal(secrets.cloud.sent.length, 1);
    });

    test(`${store}: with the file for older versions, all passwords are in the state`, async (t) => {
      const secrets = await open(t, overridden(t));
      await secrets.apply({ ...PREFIX, ...accepted('1'), store });
      assert.ok(secrets.stateText().includes(PLANTED));
      assert.deepEqual(secrets.cloud.sent, []);
      assert.deepEqual(await secrets.plan({ ...PREFIX, ...accepted('1'), store }), [], 'nothing is drawn anew');
    });
  }

  test('a Terraform without write-only arguments is refused, and the message says which has them', async (t) => {
    if (writeOnly) return t.skip('this one has them');
    const secrets = await open(t);
    const refusal = await secrets.plan({ ...PREFIX, ...accepted('1') });
    assert.match(String(refusal), /only supported in Terraform 1\.11 and later/);
  });
});
