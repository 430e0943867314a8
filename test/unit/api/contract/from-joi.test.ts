import { describe, expect, it } from '@jest/globals';
import Joi from 'joi';

import { fromJoi } from '../../../../api/contract/from-joi.ts';
import { createDocument } from '../../../../api/openapi/public-api.ts';
import type { Endpoint } from '../../../../api/contract/endpoint.ts';
import { ENDPOINTS } from '../../../../api/endpoints.ts';
import { createAnswerChecker } from '../../../fuzz/check-answer.ts';
import { createChance } from '../../../support/chance.ts';
import { createValueMaker } from '../../../fuzz/make-value.ts';
import { pointerOf } from '../../../fuzz/read-document.ts';
import type { ServedDocument } from '../../../fuzz/read-document.ts';
import { parseChatBody, parseChatStreamBody } from '../../../../api/chat/chat-body.ts';
import { parseCompletionsBody } from '../../../../api/chat/completions-body.ts';
import { checkAgainst, isRecord } from '../../../../shared/contracts/parse.ts';

describe('a joi schema in JSON Schema', () => {
  it('refuses the empty text that joi refuses by itself', () => {
    expect(fromJoi(Joi.string())).toEqual({ type: 'string', minLength: 1 });
    expect(fromJoi(Joi.string().allow(''))).toEqual({ type: 'string' });
  });

  it('may be null where an alternative may', () => {
    expect(fromJoi(Joi.alternatives(Joi.boolean(), Joi.string().allow('')).allow(null))).toEqual({
      anyOf: [{ type: 'boolean' }, { type: 'string' }, { type: 'null' }],
    });
  });

  it('names what a text of a parameter stands for', () => {
    const limit = Joi.string()
      .pattern(/^\d+$/)
      .meta({ reads: { type: 'integer', minimum: 1, maximum: 9 }, default: 3 })
      .description('How many.');

    expect(fromJoi(limit)).toEqual({ type: 'integer', minimum: 1, maximum: 9, default: 3, description: 'How many.' });
  });

  it.each([
    ['a custom rule without words', Joi.string().custom((value: string) => value)],
    ['a rule that it does not know', Joi.string().email()],
    ['a pattern with flags', Joi.string().pattern(/^a$/i)],
    ['a condition', Joi.object({ a: Joi.any(), b: Joi.any().when('a', { is: 1, then: Joi.required() }) })],
    ['keys by pattern', Joi.object().pattern(/^a/, Joi.string())],
  ])('is not made of %s', (_what, schema) => {
    expect(() => fromJoi(schema)).toThrow();
  });
});

/** Rules that JSON Schema cannot say; the descriptions do. */
const IN_WORDS =
  /response_format\.json_schema|nested deeper|bytes as JSON|__proto__|six decimals|http or https URL|half a surrogate pair|\.content` is not allowed to be empty|at least one message with text|requests\[\d+\]\.body` does not match|`messages\[|`tools\[\d+\]\.\w+` is required|` needs `|`tool_choice` must/;

const bodies = Object.entries<Endpoint>(ENDPOINTS).flatMap(([name, { body }]) =>
  body === undefined ? [] : [[name, body] as const],
);
const READERS: Partial<Record<string, (input: unknown) => unknown>> = {
  ChatBody: parseChatBody,
  ChatStreamBody: parseChatStreamBody,
  CompletionsBody: parseCompletionsBody,
};
const VALUES = 600;

describe('the schema of a body', () => {
  // What is served has passed through JSON.
  const document = JSON.parse(JSON.stringify(createDocument())) as ServedDocument;
  const checker = createAnswerChecker(document);

  it.each(bodies)('lets through what the validator lets through: %s', (_name, body) => {
    const chance = createChance(36);
    const maker = createValueMaker(document, chance);
    const read =
      READERS[body.name] ??
      ((input: unknown) => {
        checkAgainst(body.schema, input);
      });
    const differences: string[] = [];
    let passed = 0;
    for (let count = 0; count < VALUES; count += 1) {
      const schema = { $ref: `#/components/schemas/${body.name}` };
      const made = maker.make(schema, { wrongness: chance.pick([0, 0.02, 0.1]) });
      // Messages that are made by chance hardly ever follow each other as calls of tools and their results must.
      const isSimple = body.name === 'CompletionsBody' && isRecord(made) && 'messages' in made && chance.is(0.7);
      const text = JSON.stringify(isSimple ? { ...made, messages: [{ role: 'user', content: 'x' }] } : made);
      const value: unknown = JSON.parse(text);
      const byDocument = checker.validate(pointerOf('components', 'schemas', body.name), value);
      let refusal = '';
      try {
        read(value);
        passed += 1;
      } catch (error) {
        refusal = error instanceof Error ? error.message : 'refused';
      }
      const isAllowed = byDocument.length === 0;
      if (isAllowed !== (refusal === '') && !(isAllowed && IN_WORDS.test(refusal)))
        differences.push(`${text.slice(0, 300)}: ${refusal === '' ? byDocument.join('; ') : refusal}`);
    }

    expect(differences).toEqual([]);
    expect(passed).toBeGreaterThan(VALUES / 10);
  });
});
