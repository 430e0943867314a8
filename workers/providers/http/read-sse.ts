import type { Readable } from 'node:stream';

import { createParser } from 'eventsource-parser';

import { ProviderError } from '../provider.ts';

/** The `data` of each event; throws a ProviderError when the stream is larger than any answer may be. */
export async function* readSse(body: Readable, bytesMax: number): AsyncGenerator<string> {
  const events: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => events.push(data) });
  const decoder = new TextDecoder();
  let size = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > bytesMax) throw new ProviderError('transient', 'The provider sent an oversized stream');
    parser.feed(decoder.decode(part, { stream: true }));
    yield* events.splice(0);
  }
}
