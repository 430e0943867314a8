import { describe, expect, it } from '@jest/globals';
import Joi from 'joi';

import { countSchema, creditsSchema } from '../../../../api/contract/json-schema.ts';
import { checkAgainst } from '../../../../shared/contracts/parse.ts';
import { toCredits, toMicro } from '../../../../shared/domain/pricing.ts';

const isAccepted = (credits: unknown) => creditsSchema.validate(credits, { convert: false }).error === undefined;

describe('an amount of credits', () => {
  it('is accepted with up to six decimals and comes back as it was sent', () => {
    for (let step = 1; step < 5_000; step += 1) {
      // A spread over the whole range whose last decimals vary.
      const micro = (step * 199_933_421_977) % 1_000_000_000_000_000;
      const credits = toCredits(micro);
      expect(isAccepted(credits)).toBe(true);
      expect(toMicro(credits)).toBe(micro);
    }
  });

  it.each([0, 0.1, -0.000001, 1_000_000_000, -1_000_000_000, 999_999_999.999999])(
    'an amount of credits is accepted: %p',
    (credits) => {
      expect(isAccepted(credits)).toBe(true);
    },
  );

  it.each([1e-7, 0.1234567, 999_999_999.1234567, 1_000_000_000.000001, -1e10, 1e308, Infinity, NaN, '1', null, true])(
    'an amount of credits is refused: %p',
    (credits) => {
      expect(isAccepted(credits)).toBe(false);
    },
  );
});

describe('a number within bounds', () => {
  it.each([1e20, -1e20, Infinity])('is refused with its own bounds where it is beyond all: %p', (value) => {
    const schema = Joi.object({ count: countSchema(1, 60), credits: creditsSchema });
    const check = (name: string) => () => {
      checkAgainst(schema, { [name]: value });
    };

    expect(check('count')).toThrow('`count` must be between 1 and 60.');
    expect(check('credits')).toThrow('`credits` must be between -1000000000 and 1000000000.');
  });
});
