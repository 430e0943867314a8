import { setTimeout as pause } from 'node:timers/promises';

import { NDJSON, ndjsonOf } from '../../support/batch-client.ts';
import { chatOf } from '../../support/chat.ts';

export interface BatchState {
  id: string;
  status: string;
  request_counts: { total: number; completed: number; failed: number };
  waiting_for: string | null;
}

interface BatchResult {
  custom_id: string;
  request_id: string;
  response?: { id: string; choices?: { message: { content: string | null } }[] };
  error?: { code: string };
}

const POLL_MS = 100;
const QUESTION = 'how does a river find its way from a spring to the sea?';
const lineOf = (index: number) => ({ custom_id: `line-${index}`, body: chatOf(`Question ${index}: ${QUESTION}`) });

/** The number of lines that have a result. */
export function endedOf({ request_counts: { completed, failed } }: BatchState): number {
  return completed + failed;
}

interface BatchCaller {
  /** Base URL, `/platform/v1` included; evaluated at every call, because servers come and go. */
  url: () => string;
  key: string;
  signal: AbortSignal;
}

/** `/batches` from a tenant's point of view. */
export function createBatchClient({ url, key, signal }: BatchCaller) {
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': NDJSON };
    const response = await fetch(`${url()}/batches${path}`, { ...init, headers, signal });
    if (!response.ok) throw new Error(`/batches${path} answered ${response.status}: ${await response.text()}`);
    return response;
  }
  // As docs/guide/batches.md describes them.
  const find = async (id: string) => (await (await send(`/${id}`)).json()) as BatchState;

  return {
    find,
    /** Submits a batch of this many lines with one short question each, or of these lines. */
    async submit(lines: number | readonly object[]): Promise<BatchState> {
      const rows = typeof lines === 'number' ? Array.from({ length: lines }, (_, at) => lineOf(at)) : lines;
      const body = ndjsonOf(rows);
      return (await (await send('', { method: 'POST', body })).json()) as BatchState;
    },
    async results(id: string): Promise<BatchResult[]> {
      const lines = (await (await send(`/${id}/results`)).text()).split('\n').filter((line) => line !== '');
      return lines.map((line) => JSON.parse(line) as BatchResult);
    },
    /** Waits until `check` holds. */
    async until(id: string, check: (state: BatchState) => boolean): Promise<BatchState> {
      for (;;) {
        const state = await find(id);
        if (check(state)) return state;
        await pause(POLL_MS, undefined, { signal });
      }
    },
  };
}
