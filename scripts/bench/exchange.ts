import type { Client, Dispatcher } from 'undici';

import type { LoadSpec } from './load-spec.ts';

/** Only the end of an answer is checked: a generator that parsed answers would be the bottleneck. */
const END_BYTES = 256;
const TEXT = Buffer.from('"content":"');
const QUOTE = 0x22;

/** What is recorded of one answer. */
export interface Answer {
  status: number;
  /** Times until the body's first byte, and its first text. */
  firstByteMs: number;
  firstTextMs: number;
  /** Only for resumed streams. */
  resumedMs?: number;
  end: Buffer;
  /** Only for resumed streams: whether events came twice, or not at all. */
  isBroken?: boolean;
}

/** Chunks that only name the role have empty text. */
function hasText(part: Buffer): boolean {
  for (let at = part.indexOf(TEXT); at !== -1; at = part.indexOf(TEXT, at + 1)) {
    if (part[at + TEXT.length] !== QUOTE) return true;
  }
  return false;
}

/** `onPart` may end the call, which then resolves with what has arrived. */
export function exchange(
  client: Client,
  options: Dispatcher.DispatchOptions,
  hear: { onHead?: (headers: Record<string, unknown>) => void; onPart?: (part: Buffer) => 'enough' | undefined } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const answer: Answer = { status: 0, firstByteMs: 0, firstTextMs: 0, end: Buffer.alloc(0) };
    client.dispatch(options, {
      // undici recognizes this form of handler by its first method.
      onRequestStart: () => undefined,
      onResponseStart(_controller, status, headers) {
        answer.status = status;
        hear.onHead?.(headers);
      },
      onResponseData(controller, part) {
        if (answer.firstByteMs === 0) answer.firstByteMs = performance.now() - sentAt;
        if (answer.firstTextMs === 0 && hasText(part)) answer.firstTextMs = performance.now() - sentAt;
        answer.end = part.length >= END_BYTES ? part : Buffer.concat([answer.end, part]).subarray(-END_BYTES);
        if (hear.onPart?.(part) !== 'enough') return;
        resolve(answer);
        controller.abort(new Error('enough'));
      },
      onResponseEnd() {
        resolve(answer);
      },
      onResponseError(_controller, error) {
        reject(error);
      },
    });
  });
}

/** Reads a stream in two halves, on two connections, and checks whether together they are complete. */
export async function exchangeResumed(
  client: Client,
  options: Dispatcher.DispatchOptions,
  { headers, resume }: { headers: LoadSpec['headers']; resume: NonNullable<LoadSpec['resume']> },
): Promise<Answer> {
  let text = '';
  let requestId = '';
  const ids = () => [...text.matchAll(/^id: (\d+)\n/gm)].map(([, id]) => Number(id));
  const first = await exchange(client, options, {
    onHead: (received) => {
      requestId = String(received['x-request-id']);
    },
    onPart: (part) => {
      text += part.toString('latin1');
      return ids().length >= resume.afterEvents ? 'enough' : undefined;
    },
  });
  if (first.status !== 200) return first;
  // Half an event may have arrived: it is requested again.
  text = text.slice(0, text.lastIndexOf('\n\n') + 2);
  const { pathname } = new URL(`${resume.url}/${requestId}`);
  const rest = await exchange(
    client,
    { path: pathname, method: 'GET', headers: { ...headers, 'Last-Event-ID': String(ids().at(-1) ?? 0) } },
    {
      onPart: (part) => {
        text += part.toString('latin1');
        return undefined;
      },
    },
  );
  const isBroken = ids().some((id, index) => id !== index + 1);
  return { ...rest, firstTextMs: first.firstTextMs, resumedMs: rest.firstByteMs, isBroken };
}
