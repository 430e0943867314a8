import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { chatOf, waitFor } from '../support/chat.ts';
import { openFleet } from '../support/fleet.ts';
import type { Fleet, WorkerProcess } from '../support/fleet.ts';
import { openStream, post, seqsOf } from '../support/stream-client.ts';

const CREDITS = 1_000_000;
const STREAMS = 20;
const PATIENT = 12;
/** One of two workers may take all of them where the machine keeps the other one waiting; then more are sent. */
const MORE = 4;
const CHUNKS = 60;
const CHUNK_MS = 100;
/** docs/spec.md#workers. */
const END_WITHIN_MS = 15_000;

/** E1 of docs/faults.md, in small. */
describe('a worker that is killed amid streams', () => {
  let fleet: Fleet;
  let workers: WorkerProcess[];
  beforeAll(async () => {
    fleet = await openFleet();
    // The second tier's provider takes its time before it says anything.
    const model = 'sim?first_token_ms=5000&chunks=3&chunk_ms=0';
    // Set, as a search for it would wait for first tokens.
    const targets = [{ provider: 'simulated', model, context_window: 128_000, max_in_flight: 100 }];
    await fleet.admin('PUT', '/tiers/oloid', { rates: { prompt: 4, completion: 4 }, targets });
    workers = await Promise.all([fleet.startWorker(), fleet.startWorker()]);
    await fleet.changeProvider({ chunks: CHUNKS, chunk_ms: CHUNK_MS });
  }, 60_000);
  afterAll(async () => {
    await fleet.close();
  });

  /** What the provider says to this prompt when nothing goes wrong: the same every time. */
  async function wholeAnswer(prompt: string): Promise<string> {
    const body = { model: 'sim?chunk_ms=0', messages: [{ role: 'user', content: prompt }], max_tokens: 4_096 };
    const response = await fetch(`${fleet.providerUrl}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    return choices[0]?.message.content ?? '';
  }

  /** Of this tier, by worker. */
  function claimsOf(tier: string): Promise<number[]> {
    return Promise.all(
      workers.map(async ({ url }) => {
        const page = await (await fetch(`${url}/metrics`)).text();
        const isOfTier = (line: string) =>
          line.startsWith('parley_queue_wait_seconds_count{') && line.includes(`tier="${tier}"`);
        const line = page.split('\n').find(isOfTier);
        return Number(line?.split(' ').at(-1) ?? 0);
      }),
    );
  }

  /** Sends `count` requests, and more of them until each worker has one. */
  async function sendToBoth<Sent>(tier: string, count: number, send: (index: number) => Sent): Promise<Sent[]> {
    const sent = Array.from({ length: count }, (_, index) => send(index));
    for (;;) {
      const claims = await waitFor(async () => {
        const found = await claimsOf(tier);
        return found.reduce((sum, claimed) => sum + claimed, 0) === sent.length ? found : undefined;
      }, 'their claims');
      if (!claims.includes(0)) return sent;
      const at = sent.length;
      sent.push(...Array.from({ length: MORE }, (_, index) => send(at + index)));
    }
  }

  /** A request whose provider takes its time. */
  async function postPatient(key: string, index: number): Promise<{ status: number; requestId: string }> {
    const response = await post(fleet.api.url, key, '/chat', chatOf(`Patience ${index}`, { model: 'oloid' }));
    await response.text();
    return { status: response.status, requestId: String(response.headers.get('x-request-id')) };
  }

  it('ends its streams with the typed error within 15 s, runs the rest again, and leaves the others alone', async () => {
    const [streaming, waiting] = [await fleet.startTenant(CREDITS), await fleet.startTenant(CREDITS)];
    const promptOf = (index: number) => `Story number ${index}`;
    const streams = await Promise.all(
      await sendToBoth('mobius', STREAMS, (index) =>
        openStream(fleet.api.url, streaming.liveKey, chatOf(promptOf(index))),
      ),
    );
    const answers = await sendToBoth('oloid', PATIENT, (index) => postPatient(waiting.liveKey, index));
    await waitFor(async () => {
      const known = await fleet.providerCounts();
      return known.size === streams.length + answers.length ? true : undefined;
    }, 'their calls');
    await waitFor(() => (streams.every(({ read }) => read.text !== '') ? true : undefined), 'text of every stream');

    await workers[0]?.kill();
    const killedAt = performance.now();
    const reads = await Promise.all(streams.map(({ ended }) => ended));
    const patient = await Promise.all(answers);
    const [streamed, waited] = [await fleet.atRest(streaming.tenantId), await fleet.atRest(waiting.tenantId)];
    const calls = await fleet.providerCounts();

    const interrupted = reads.filter(({ errorCode }) => errorCode !== undefined);
    expect(interrupted.length).toBeGreaterThan(0);
    expect(interrupted.length).toBeLessThan(streams.length);
    for (const [index, read] of reads.entries()) {
      // No text twice, no gap: numbers in order, and a beginning of the one answer there is.
      expect(seqsOf(read)).toEqual(seqsOf(read).map((_, position) => position + 1));
      const whole = await wholeAnswer(promptOf(index));
      if (read.errorCode === undefined) {
        expect(read).toMatchObject({ finishReason: 'stop', isDone: true, text: whole });
        expect(read.endedAt - killedAt).toBeLessThan(CHUNKS * CHUNK_MS * 2);
      } else {
        expect(read).toMatchObject({ finishReason: 'error', errorCode: 'model_unavailable', isDone: false });
        expect(whole.startsWith(read.text)).toBe(true);
        expect(read.usage?.completion).toBeGreaterThan(0);
        expect(read.endedAt - killedAt).toBeLessThan(END_WITHIN_MS);
      }
    }
    expect(streamed.requestIds.sort()).toEqual(streams.map(({ requestId }) => requestId).sort());
    const used = reads.reduce((sum, { usage }) => sum + (usage?.prompt ?? 0) + (usage?.completion ?? 0), 0);
    expect(streamed).toMatchObject({ spentMicro: used * 1_000_000, balance: CREDITS - used });
    expect(streams.map(({ requestId }) => calls.get(requestId)?.calls)).toEqual(streams.map(() => 1));

    expect(new Set(patient.map(({ status }) => status))).toEqual(new Set([200]));
    expect(waited.requestIds.sort()).toEqual(patient.map(({ requestId }) => requestId).sort());
    // Once by the worker that lives, twice where the dead one had begun.
    expect(new Set(patient.map(({ requestId }) => calls.get(requestId)?.calls))).toEqual(new Set([1, 2]));
  }, 60_000);
});
