/** What `make.ts` puts into a state folder, and the tests look for. */

export const workloads = [
  { name: 'sessions', keys: ['session:*'] },
  { name: 'carts', keys: ['cart:*'] },
  { name: 'flags', keys: ['flag:*'] },
];

/** Written when the target did not confirm any more. */
export const LEFT = ['session:left:1', 'session:left:2', 'session:left:3'];

/** Its value was changed on the target. */
export const MISMATCH = 'session:7';
