import { describe, expect, it } from '@jest/globals';

import { createBodyBudget } from '../../../../api/http/read-body.ts';

const refused = (whose: string) =>
  expect.objectContaining({ code: 'model_unavailable', retryAfterSeconds: 5, message: expect.stringContaining(whose) });

function faultOf(act: () => void): unknown {
  try {
    act();
  } catch (fault) {
    return fault;
  }
  return undefined;
}

describe('the room for bodies', () => {
  it('ends for one tenant before it ends for others', () => {
    const budget = createBodyBudget(100, 250);
    const shares = [0, 1].map(() => budget.open('one'));
    shares[0]?.hold(60);
    expect(faultOf(() => shares[1]?.hold(41))).toEqual(refused('account'));
    budget.open('two').hold(100);
    expect(
      faultOf(() => {
        budget.open('three').hold(91);
      }),
    ).toEqual(refused('Other'));
    budget.open('three').hold(90);
  });

  it('is given back once, when a body is no longer held or holds less', () => {
    const budget = createBodyBudget(100);
    const share = budget.open('one');
    share.hold(100);
    share.hold(30);
    const other = budget.open('one');
    other.hold(70);
    share.close();
    share.close();
    expect(
      faultOf(() => {
        budget.open('one').hold(31);
      }),
    ).toEqual(refused('account'));
    budget.open('one').hold(30);
  });
});
