import { createHash } from 'node:crypto';

/** The document as it is sent, with its ETag. */
export interface ServedDocument {
  text: string;
  etag: string;
}

async function make(): Promise<ServedDocument> {
  const { createDocument } = await import('./public-api.ts');
  const text = JSON.stringify(createDocument());
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` };
}

let made: Promise<ServedDocument> | undefined;

/**
 * The document of the public API, the same for the life of the process. It is made at the first call, which takes some
 * 0.2 s: the ingress makes it before it listens; whoever only composes one need not load the generator.
 */
export function servedDocument(): Promise<ServedDocument> {
  return (made ??= make());
}
