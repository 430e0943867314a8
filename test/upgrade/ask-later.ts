import { setTimeout as pause } from 'node:timers/promises';

import { callJson } from '../../scripts/harness/http.ts';
import type { Tenant } from '../fault/client/caller.ts';
import type { Lab } from '../fault/lab/lab.ts';

const POLL_MS = 200;
const TRIES = 300;

/** A busy store refuses; a client asks again when it was told to, under the same key. */
const ASK_TRIES = 5;

/** Asks with `Prefer: respond-async` and looks the request up until it has ended. Resolves with its last state. */
export async function askLater(lab: Lab, { key }: Tenant, url: string, idempotencyKey: string): Promise<string> {
  const headers = {
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': idempotencyKey,
    Prefer: 'respond-async',
  };
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'How does a river find its way to the sea?' }] });
  const ask = () => fetch(`${url}/platform/v1/chat`, { method: 'POST', headers, body, signal: lab.signal });
  let accepted = await ask();
  for (let tries = 1; accepted.status === 503 && tries < ASK_TRIES; tries += 1) {
    await accepted.text();
    await pause(Number(accepted.headers.get('retry-after') ?? 1) * 1_000, undefined, { signal: lab.signal });
    accepted = await ask();
  }
  const text = await accepted.text();
  if (accepted.status !== 202) return `${accepted.status}: ${text}`;
  // As docs/guide/streaming.md describes it.
  const { id } = JSON.parse(text) as { id: string };
  let state = '';
  for (let tries = 0; tries < TRIES; tries += 1) {
    const found = await callJson('GET', `${url}/platform/v1/chat/${id}`, { token: key });
    state = String(found.body['status']);
    if (state === 'completed' || state === 'failed' || state === 'cancelled') return state;
    await pause(POLL_MS, undefined, { signal: lab.signal });
  }
  return `${id} is ${state}`;
}
