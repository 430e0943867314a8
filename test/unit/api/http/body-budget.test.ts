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

  it('has a small body of a tenant that holds nothing, while eight others hold all the rest', () => {
    const [mebibyte, part] = [1024 * 1024, 16 * 1024];
    const budget = createBodyBudget();
    for (let other = 0; other < 8; other += 1) {
      const share = budget.open(`other ${other}`);
      faultOf(() => {
        for (let bytes = part; bytes <= 64 * mebibyte; bytes += part) share.hold(bytes);
      });
    }
    const share = budget.open('new');
    for (let bytes = part; bytes <= 4 * part; bytes += part) share.hold(bytes);
    expect(
      faultOf(() => {
        share.hold(5 * part);
      }),
    ).toEqual(refused('Other'));
  });

  it('has a place for the first upload of a tenant, while seven others hold all that they may', () => {
    const places = createBodyBudget(4, 32, 1);
    for (let other = 0; other < 28; other += 1) places.open(`other ${other % 7}`).hold(1);
    expect(
      faultOf(() => {
        places.open('other 7').hold(1);
      }),
    ).toBeUndefined();
    expect(
      faultOf(() => {
        places.open('other 7').hold(1);
      }),
    ).toEqual(refused('Other'));
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
