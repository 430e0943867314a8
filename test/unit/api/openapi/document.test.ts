import { describe, expect, it } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { SpecData } from '@seriousme/openapi-schema-validator';

import { createAdminDocument } from '../../../../api/openapi/admin-api.ts';
import { createDocument } from '../../../../api/openapi/public-api.ts';
import { createAnswerChecker } from '../../../fuzz/check-answer.ts';
import { endpointsOf, follow, pointerOf } from '../../../fuzz/read-document.ts';
import type { ServedContent, ServedDocument } from '../../../fuzz/read-document.ts';
import type { Endpoint } from '../../../../api/contract/endpoint.ts';
import { ENDPOINTS } from '../../../../api/endpoints.ts';
import { isRecord } from '../../../../shared/contracts/parse.ts';
import { WEBHOOK_EVENT_TYPES } from '../../../../shared/contracts/webhook-events.ts';
import { ERRORS } from '../../../../shared/errors/codes.ts';

type Made = ReturnType<typeof make>;

function make(create: () => object) {
  // What is served has passed through JSON.
  const text = JSON.stringify(create());
  const document = JSON.parse(text) as ServedDocument;
  return { text, document, checker: createAnswerChecker(document) };
}

const publicApi = make(createDocument);
const { document } = publicApi;
const administration = make(createAdminDocument);

/** What speaks against the examples of a body or an answer. */
function exampleFaults(
  { document, checker }: Pick<Made, 'document' | 'checker'>,
  pointer: string,
  content: Record<string, ServedContent> = {},
): string[] {
  return Object.entries(content).flatMap(([type, { examples = {} }]) =>
    Object.entries(examples).flatMap(([name, example]) => {
      const { value } = follow(document, example);
      const place = pointer + pointerOf('content', type, 'schema');
      // Of a sequence the schema is of each part.
      const values =
        type !== 'application/json' && typeof value === 'string'
          ? [...value.matchAll(/^(?:data: )?(\{.*\})$/gm)].map(([, json = '']) => JSON.parse(json) as unknown)
          : [value];
      return values.flatMap((each) => checker.validate(place, each).map((fault) => `${pointer} ${name}: ${fault}`));
    }),
  );
}

function valuesOf(key: string, value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuesOf(key, item));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => (name === key ? [inner] : valuesOf(key, inner)));
}

describe.each([
  ['the document of the public API', createDocument, publicApi],
  ['the document of the administration', createAdminDocument, administration],
])('%s', (_name, create, made) => {
  it('is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(JSON.parse(made.text) as SpecData);

    expect(result.errors).toBeUndefined();
    expect(result.valid).toBe(true);
  });

  it('is the same every time', () => {
    expect(JSON.stringify(create())).toBe(made.text);
  });

  it('has examples that fit their schemas', () => {
    const { document } = made;
    const faults = endpointsOf(document).flatMap(({ pointer, body, responses }) => [
      // It is there to be refused.
      ...exampleFaults(made, `${pointer}/requestBody`, body).filter((fault) => !fault.includes(' no_messages: ')),
      ...Object.values(responses).flatMap(({ pointer: place, content }) => exampleFaults(made, place, content)),
    ]);
    const events = Object.keys(document.webhooks).flatMap((type) => {
      const place = pointerOf('webhooks', type, 'post', 'requestBody');
      return exampleFaults(made, place, document.webhooks[type]?.post.requestBody?.content);
    });

    expect([...faults, ...events]).toEqual([]);
  });

  it('refers to every component that it has, and has every one that it refers to', () => {
    const referred = new Set(valuesOf('$ref', made.document).map(String));
    const had = Object.entries(made.document.components)
      .filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, items]) => Object.keys(items).map((name) => `#/components/${kind}/${name}`));

    expect([...referred].toSorted()).toEqual(had.toSorted());
  });
});

describe('the document', () => {
  it('asks for the scopes that the guards ask for', () => {
    for (const { id, scopes } of endpointsOf(document).filter(({ needsKey }) => needsKey)) {
      const rule = Object.entries<Endpoint>(ENDPOINTS).find(([name]) => name === id)?.[1];
      expect([id, scopes]).toEqual([id, rule?.scopes === 'any' ? [] : rule?.scopes]);
    }
  });

  it('has every event of the webhooks and every error', () => {
    expect(Object.keys(document.webhooks).toSorted()).toEqual(WEBHOOK_EVENT_TYPES.toSorted());
    expect(document.components['schemas']?.['ErrorCode']).toMatchObject({ enum: Object.keys(ERRORS) });
  });

  it('has an example of every success of every endpoint that needs a key', () => {
    const without = endpointsOf(document).flatMap(({ id, needsKey, responses }) =>
      Object.entries(responses)
        .filter(([status, { content }]) => needsKey && status.startsWith('2') && content !== undefined)
        .filter(([, { content = {} }]) => Object.values(content).every(({ examples }) => examples === undefined))
        .map(([status]) => `${id} ${status}`),
    );

    // The others are tested beside their routes: the same as another's, an entity that is made, the bytes of an archive.
    expect(without).toEqual(['createChatCompletion 202', 'putEntity 201', 'downloadExport 200']);
  });
});
