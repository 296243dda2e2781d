/** What both servers must know: SCRIPT LOAD, CONFIG SET. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { argumentsOf } from '../../../../src/resp/decode.js';
import { encodeCommand } from '../../../../src/resp/encode.js';
import { type Script } from '../../../../src/script/catalog.js';
import { connect } from '../../../support/context.js';

test('SCRIPT LOAD goes to the authority and its mirror; the text is accepted when the server has taken it', async () => {
  const { client, proxy } = await connect();
  client.send('SCRIPT', 'LOAD', 'return 1');
  const { scripts } = proxy.sequencer;
  const script = scripts.find(argumentsOf(encodeCommand(['EVAL', 'return 1', 0]))) as Script;
  assert.deepEqual([proxy.sent[0].side, proxy.sent[0].follow, script.accepted], ['source', 'write', false]);
  proxy.answer(`$40 ${script.sha}`);
  assert.deepEqual([script.accepted, proxy.mirrored], [true, ['SCRIPT LOAD return 1']]);
});

test('a text that the server refuses is not accepted, nor mirrored', async () => {
  const { client, proxy } = await connect();
  client.send('SCRIPT', 'LOAD', 'return');
  proxy.answer('-ERR');
  const script = proxy.sequencer.scripts.find(argumentsOf(encodeCommand(['EVAL', 'return', 0]))) as Script;
  assert.deepEqual([script.accepted, proxy.mirrored], [false, []]);
});

test('where nothing is mirrored, nothing follows; the target answers where it is the authority', async () => {
  for (const [stage, side] of [
    ['off', 'source'],
    ['complete', 'target'],
  ] as const) {
    const { client, proxy } = await connect({ default: stage });
    client.send('SCRIPT', 'LOAD', 'return 1');
    assert.deepEqual([proxy.sent[0].side, proxy.sent[0].follow], [side, 'nothing']);
  }
});

test('it waits while the default workload changes its stage', async () => {
  const { client, proxy } = await connect();
  proxy.hold('default');
  client.send('CONFIG', 'SET', 'notify-keyspace-events', 'KEA');
  assert.deepEqual([client.waits, proxy.took()], [['open'], []]);
});

test('a setting that the mirror refuses is not compared; a script that it refuses is', async () => {
  for (const [command, ignored] of [
    [['CONFIG', 'SET', 'notify-keyspace-events', 'KEA'], true],
    [['SCRIPT', 'LOAD', 'return 1'], false],
  ] as const) {
    const { client, proxy } = await connect();
    const effects: (((reply: Buffer | null) => void) | null)[] = [];
    proxy.sequencer.mirrors.target.listen(({ confirmed }) => effects.push(confirmed));
    client.send(...command);
    proxy.answer(ignored ? '+OK' : '$1 x');
    assert.deepEqual(
      effects.map((confirmed) => confirmed !== null),
      [ignored],
    );
  }
});
