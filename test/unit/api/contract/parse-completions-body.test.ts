import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

import { completionsWireSchema, isPlainCompletionsBody } from '../../../../api/contract/parse-completions-body.ts';

const MESSAGE = { role: 'user', content: 'Hello' };

describe('a plain body of completions', () => {
  const near = (limit: number) => fc.constantFrom(0, 1, limit - 1, limit, limit + 1);
  const odd = fc.oneof(fc.constantFrom(0.5, -1, 1e300, '5', null, 'Mobius', '', true), fc.jsonValue());
  const mostly = (values: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 15, arbitrary: values }, { weight: 1, arbitrary: odd });
  const message = fc.record({ role: fc.constantFrom('user', 'system', 'assistant'), content: fc.string() });
  const usual = fc.record(
    {
      messages: mostly(fc.array(message, { maxLength: 3 })),
      model: mostly(fc.constantFrom('mobius', 'oloid')),
      max_tokens: mostly(near(16_384)),
      stream: mostly(fc.boolean()),
      temperature: mostly(fc.double({ min: -0.1, max: 2.1, noNaN: true })),
      top_p: mostly(fc.double({ min: -0.1, max: 1.1, noNaN: true })),
      unknown: fc.jsonValue(),
    },
    { requiredKeys: ['messages'] },
  );
  const rare = fc.record(
    { max_completion_tokens: near(16_384), stop: odd, n: odd, user: odd, metadata: odd, json_mode: odd },
    { requiredKeys: [] },
  );
  const body = fc
    .tuple(usual, fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: rare }))
    .map(([fields, more]) => ({ ...fields, ...more }));

  it('is one that the schema accepts as it is', () => {
    let plain = 0;
    fc.assert(
      fc.property(body, (input) => {
        // As it comes from the wire.
        const sent: unknown = JSON.parse(JSON.stringify(input));
        if (!isPlainCompletionsBody(sent)) return;
        plain += 1;
        expect(completionsWireSchema.validate(sent, { convert: false })).toEqual({ value: sent });
      }),
      { seed: 63, numRuns: 5_000 },
    );
    expect(plain).toBeGreaterThan(200);
  });

  it.each([
    ['the least', {}],
    ['a stream', { model: 'oloid', max_tokens: 5, stream: true }],
    ['with sampling', { temperature: 0.7, top_p: 1 }],
  ])('is what most callers send: %s', (_name, fields) => {
    expect(isPlainCompletionsBody({ messages: [MESSAGE], ...fields })).toBe(true);
  });

  it.each([
    ['temperature', 2.1],
    ['temperature', null],
    ['top_p', 1.5],
    ['stream', 'yes'],
    ['stop', ['a']],
    ['response_format', { type: 'json_object' }],
    ['n', 2],
  ])('leaves %s of %j to the schema', (name, value) => {
    expect(isPlainCompletionsBody({ messages: [MESSAGE], [name]: value })).toBe(false);
  });
});
