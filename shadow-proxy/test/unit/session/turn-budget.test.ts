/** How clients share the commands of one turn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ALONE, LEAST_SHARE, TOGETHER, TurnBudget } from '../../../src/session/turn-budget.js';

test('clients that want more than their share have it divided among as many as there were in the turn before', () => {
  const budget = new TurnBudget();
  assert.equal(budget.share(1), ALONE);
  budget.usedUp();
  assert.equal(budget.share(1), ALONE, 'within a turn nothing changes');
  assert.equal(budget.share(2), ALONE, 'one alone has all of it');
  budget.usedUp();
  budget.usedUp();
  assert.equal(budget.share(3), TOGETHER / 2);
  for (let i = 0; i < 50; i++) budget.usedUp();
  assert.equal(budget.share(4), LEAST_SHARE, 'so that a short pipeline is never cut');
  assert.equal(budget.share(5), ALONE, 'nobody wanted more');
});

test('what is used up is counted once a turn, however often the share is asked for', () => {
  const budget = new TurnBudget();
  budget.share(1);
  budget.usedUp();
  budget.usedUp();
  budget.usedUp();
  assert.equal(budget.share(2), LEAST_SHARE);
  assert.equal(budget.share(2), LEAST_SHARE, 'asked again in the same turn');
});
