import { follow } from './read-document.ts';
import type { Endpoint, ServedDocument } from './read-document.ts';

/** An example request of the document, without values for its path. */
export interface ExampleRequest {
  name: string;
  /** The status that the document answers it with. */
  status: number;
  query: Record<string, unknown>;
  headers: Record<string, string>;
  contentType?: string;
  body?: unknown;
}

interface Named {
  examples?: Record<string, { $ref?: string }>;
}

/** An example's value under a name, from a parameter or a content type. */
function valueUnder(document: ServedDocument, { examples }: Named, name: string): unknown {
  const example = examples?.[name];
  return example === undefined ? undefined : (follow(document, example) as { value?: unknown }).value;
}

/**
 * The example requests of an endpoint: parameters, body and answer of one example have its name in common, and the
 * status is the one where its answer stands. Answers that are shared between endpoints are nobody's example.
 */
export function examplesOf(document: ServedDocument, { parameters, body, responses }: Endpoint): ExampleRequest[] {
  const answered = Object.entries(responses).flatMap(([status, { content = {} }]) =>
    Object.values(content).flatMap(({ examples = {} }) =>
      Object.entries(examples)
        .filter(([, { $ref }]) => $ref === undefined)
        .map(([name]) => ({ name, status: Number(status) })),
    ),
  );
  return answered.map(({ name, status }) => {
    const given = parameters.flatMap((parameter) => {
      const value = valueUnder(document, parameter, name);
      return value === undefined ? [] : [{ place: parameter.in, name: parameter.name, value }];
    });
    const content = Object.entries(body).find(([, type]) => type.examples?.[name] !== undefined);
    return {
      name,
      status,
      query: Object.fromEntries(given.filter(({ place }) => place === 'query').map((one) => [one.name, one.value])),
      headers: Object.fromEntries(
        // Headers are texts, in their schemas as well.
        given.filter(({ place }) => place === 'header').map((one) => [one.name, one.value as string]),
      ),
      ...(content === undefined ? {} : { contentType: content[0], body: valueUnder(document, content[1], name) }),
    };
  });
}

/** As OpenAPI writes a query by default: `style: form`, `explode: true`. */
export function writeQuery(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) search.append(name, String(each));
  return search.size === 0 ? '' : `?${search.toString()}`;
}
