/** Text that no program may print as it is, and what is wrong with an output that has it. */
import assert from 'node:assert/strict';

/** The beginning of a line that no program of the kit prints. */
const FORGED = 'FORGED: all gates are open';
/** An escape sequence, C1, DEL, a bidi override, separators, a return, and a line that looks like ours. */
export const HOSTILE = `\u001b[2J\u001b]0;x\u0007\u009b31m\u007f\u202e\u2066\u2028\u2029\u200b\r${FORGED}\n${FORGED}\n`;

/** Whatever begins with this is a control, a format character or a separator; only breaks and tabs are a program's. */
const RAW = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}]/u;

export function assertPrintable(output: string, what: string): void {
  const raw = RAW.exec(output);
  if (raw !== null)
    assert.fail(`${what}: U+${raw[0].codePointAt(0)!.toString(16)} in ${JSON.stringify(output.slice(0, 2_000))}`);
  assert.doesNotMatch(output, new RegExp(`^\\s*${FORGED}`, 'm'), what);
}
