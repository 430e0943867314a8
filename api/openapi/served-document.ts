import { createHash } from 'node:crypto';

/** The document as it is sent, with its ETag. */
export interface ServedDocument {
  text: string;
  etag: string;
}

let made: Promise<ServedDocument> | undefined;

async function make(): Promise<ServedDocument> {
  const { createDocument } = await import('./document.ts');
  const text = JSON.stringify(createDocument());
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` };
}

/**
 * The document of the public API, the same for the life of the process: made at the first call, which takes some 0.2 s.
 * The ingress makes it before it listens; whoever only composes one need not load what it is made of.
 */
export function servedDocument(): Promise<ServedDocument> {
  return (made ??= make());
}
