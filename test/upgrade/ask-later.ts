import { setTimeout as pause } from 'node:timers/promises';

import { callJson } from '../../scripts/harness/http.ts';
import type { Tenant } from '../fault/client/caller.ts';
import type { Lab } from '../fault/lab/lab.ts';

const POLL_MS = 200;
const TRIES = 300;

/** Asks with `Prefer: respond-async` and looks the request up until it has ended. Resolves with its last state. */
export async function askLater(lab: Lab, { key }: Tenant, url: string): Promise<string> {
  const headers = {
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    Prefer: 'respond-async',
  };
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'How does a river find its way to the sea?' }] });
  const accepted = await fetch(`${url}/platform/v1/chat`, { method: 'POST', headers, body, signal: lab.signal });
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
