import type { Request, RequestHandler } from 'express';

import type { Operation } from '../contract/endpoint.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';

const BASE = '/platform/v1';
const CHAT = `use POST ${BASE}/chat/completions`;

/**
 * Ends of other APIs' paths (OpenAI's, Anthropic's, Ollama's), and what to use here. The first is right but for its
 * beginning. A client whose base address ends in `/chat/completions` puts its paths behind that.
 */
const SUBSTITUTES: readonly (readonly [RegExp, string])[] = [
  [/\/chat\/completions$/, `the API is under ${BASE}: ${CHAT}`],
  [
    /\/(?:responses|messages)(?:\/|$)|\/(?:completions|complete|generate|api\/chat)$/,
    `this service has no such API: ${CHAT}`,
  ],
  [
    /\/(?:files|uploads)(?:\/|$)/,
    `this service keeps no files: POST ${BASE}/batches takes the requests of a batch themselves`,
  ],
  [
    /\/(?:rerank|images|audio|videos|fine_tuning|assistants|threads|vector_stores|realtime|conversations)(?:\/|$)/,
    `this service has chat and embeddings only: ${CHAT}`,
  ],
];

const SHOWN_MAX = 200;

function shown({ method, path }: Request): string {
  return `There is nothing at ${method} ${path.length > SHOWN_MAX ? `${path.slice(0, SHOWN_MAX)}…` : path}`;
}

/** The longest comes first. */
function endsOf(path: string): string[] {
  return [...path.matchAll(/\//g)].map(({ index }) => path.slice(index)).slice(0, 12);
}

/** For a path of the public API that no route serves: 404 names it, the base, and what the caller may have meant. */
export function createWrongPath(operations: Iterable<Operation>): RequestHandler {
  const own = [...operations].map(({ method, path }) => ({
    method,
    form: new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+').replace(/\*\w+$/, '.+')}$`),
  }));

  function adviceFor({ method, path }: Request): string {
    const substitute = SUBSTITUTES.find(([end]) => end.test(path));
    if (substitute !== undefined) return substitute[1];
    const asked = method === 'HEAD' ? 'GET' : method;
    const end = endsOf(path).find((text) => own.some((each) => each.method === asked && each.form.test(text)));
    if (end !== undefined) return `the API is under ${BASE}: use ${method} ${BASE}${end}`;
    return path.startsWith(`${BASE}/`)
      ? '/docs lists what there is'
      : `the API is under ${BASE}, its pages under /docs`;
  }

  return (req) => {
    throw new ServiceError('not_found', `${shown(req)}; ${adviceFor(req)}.`);
  };
}

/** The same on the port of the administration. */
export const wrongAdminPath: RequestHandler = (req) => {
  throw new ServiceError(
    'not_found',
    `${shown(req)}; the administration is under /admin/v1, its pages under /admin/queues and /admin/docs, and the API for keys is on another port.`,
  );
};
