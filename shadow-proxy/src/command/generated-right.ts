/** A row of `rights.generated.ts`; see there. */
export type GeneratedRight = readonly [
  command: string,
  wider: 'source' | 'target',
  words: string,
  ways: string,
  example: string,
];
