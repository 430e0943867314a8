import { createHash } from 'node:crypto';

import type { OpenApiDocument } from './document.ts';

/** A document as it is sent, with its ETag. */
export interface ServedDocument {
  text: string;
  etag: string;
}

/** Makes a document at the first call and gives the same one ever after. */
function once(create: () => Promise<OpenApiDocument>): () => Promise<ServedDocument> {
  let made: Promise<ServedDocument> | undefined;
  const make = async () => {
    const text = JSON.stringify(await create());
    return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` };
  };
  return () => (made ??= make());
}

/**
 * The document of the public API, the same for the life of the process. It takes some 0.2 s: the ingress makes it before
 * it listens; whoever only composes one need not load the generator.
 */
export const servedDocument = once(async () => (await import('./public-api.ts')).createDocument());

/** The document of the administration, made when somebody first asks for it. */
export const servedAdminDocument = once(async () => (await import('./admin-api.ts')).createAdminDocument());
