import { connect } from 'node:net';
import type { Socket } from 'node:net';

import type { Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Ingress } from '../lab/lab.ts';
import { residentBytes } from '../lab/memory.ts';
import { expectThat, none, range, SLACK_MS } from './findings.ts';

/** The most that a request may ask for. */
const TOKENS = 16_384;
/** One token of the simulated provider (scripts/simulated-provider/tokens.ts); a control character is 6 bytes of JSON. */
const TOKEN = `${'\u0001'.repeat(8)} `;
/** With about 200 bytes around each chunk the answer is a megabyte on the wire. */
const CHUNKS = 1_000;
const MEGABYTE = 1024 * 1024;
const GROWTH_MAX = 100 * MEGABYTE;
/** docs/decisions/0006-answer-streams.md: a client that has not drained for 30 s is dropped. */
const DROP_MS = 30_000;
const OTHERS_TAKE_MS = 1_000;

/** Posts, and never reads a byte of the answer. */
function postUnread({ url }: Ingress, { key }: Tenant, prompt: string): Socket {
  const { hostname, port } = new URL(url);
  const body = JSON.stringify({ messages: [{ role: 'user', content: prompt }], max_tokens: TOKENS });
  const head = [
    ...['POST /platform/v1/chat/stream HTTP/1.1', `Host: ${hostname}`, 'Connection: close'],
    ...[`Authorization: Bearer ${key}`, 'Content-Type: application/json'],
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return socket;
}

/**
 * E11. The kernel takes about 4 MB for a client on this machine that reads nothing, so these answers end without
 * back-pressure; that a client which blocks its stream is dropped is shown by relay-backpressure.integration.test.ts.
 */
export const clientsThatNeverRead: Experiment = {
  name: 'E11',
  title: '200 clients that never read answers of 1 MB, beside others that do',
  lab: {
    provider: `text=${encodeURIComponent(TOKEN.repeat(TOKENS))}`,
    models: { mobius: `sim?chunks=${CHUNKS}&chunk_ms=25`, oloid: 'sim?chunks=10&chunk_ms=50' },
  },
  async run(lab, size) {
    const tenant = await lab.openTenant(100_000_000);
    const askOther = (index: number) =>
      lab.caller.send({ url: lab.urlOf(index), tenant, model: 'oloid', isEchoed: false, body: { max_tokens: 20 } });
    await Promise.all(range(20, (index) => askOther(index).ended));
    const before = await Promise.all(lab.ingresses.map(({ pid }) => residentBytes(pid)));
    const sockets = range(size === 'full' ? 200 : 20, (index) => {
      const ingress = lab.ingresses[index % lab.ingresses.length];
      if (ingress === undefined) throw new Error('There is no ingress.');
      return postUnread(ingress, tenant, `Tell me story number ${index}.`);
    });
    const openRelays = async () => {
      const counts = await Promise.all(lab.ingresses.map((ingress) => lab.metric(ingress, 'parley_open_relays')));
      return counts.reduce((sum, count) => sum + count, 0);
    };
    try {
      await lab.waitFor(async () => (await openRelays()) >= sockets.length, 'their streams');
      // The simulated provider is busy with cutting up the texts until it has begun all of them.
      const begun = sockets.length + lab.caller.requests.length;
      await lab.waitFor(async () => (await lab.providerCounts()).size >= begun, 'their provider calls');
      await askOther(0).ended;
      const measuredFrom = performance.now();
      let growth = 0;
      let others = 0;
      const startedAt = performance.now();
      while ((await openRelays()) > 0 && performance.now() - startedAt < 2 * DROP_MS + 60_000) {
        await askOther((others += 1)).ended;
        const now = await Promise.all(lab.ingresses.map(({ pid }) => residentBytes(pid)));
        growth = Math.max(growth, ...now.map((bytes, index) => bytes - (before[index] ?? 0)));
      }
      const left = await openRelays();
      const slow = lab.caller.requests.filter(({ last }) => {
        const { sentAt, endedAt } = last();
        return sentAt > measuredFrom && endedAt - sentAt > OTHERS_TAKE_MS + SLACK_MS;
      });
      return {
        figures: {
          'ingress memory grew by (MB)': (growth / MEGABYTE).toFixed(0),
          'others meanwhile': others,
          'ended after (s)': ((performance.now() - startedAt) / 1000).toFixed(0),
        },
        verdicts: [
          expectThat('ingress memory grows by less than 100 MB', growth < GROWTH_MAX, `${growth} bytes`),
          expectThat('no relay stays open', left === 0, `${left} are still served`),
          none(
            'other clients are answered',
            lab.caller.requests.filter((sent) => sent.last().finishReason !== 'length'),
          ),
          none('other clients do not wait', slow),
        ],
      };
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  },
};
