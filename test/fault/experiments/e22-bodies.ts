import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import type { Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { residentBytes } from '../lab/memory.ts';
import { expectThat, none, range } from './findings.ts';
import { expectSamePace, paceOf } from './neighbour.ts';

const MEGABYTE = 1024 * 1024;
const GROWTH_MAX = 100 * MEGABYTE;
/** With what waits for a garbage collection of bodies that were inflated one after the other. */
const COMPLETE_GROWTH_MAX = 256 * MEGABYTE;
/** The largest chat body, less what keeps it from being too large. */
const INFLATED = Buffer.alloc(20 * MEGABYTE - 1_024, ' ');
/** 30 s for a body, 5 s in which the rest is discarded, 5 s in which the answer can be read, and a busy machine. */
const CLOSED_WITHIN_MS = 60_000;
const SAMPLE_MS = 200;

interface Flood {
  name: string;
  encoding: 'br' | 'gzip';
  bytes: Buffer;
  /** The last chunk is sent, too. */
  isComplete: boolean;
  /** 20 MiB are parsed one after the other, which takes a quarter of the process: the other tenant is served, slower. */
  isParsed?: boolean;
}

const FLOODS: readonly Flood[] = [
  { name: 'brotli that stalls', encoding: 'br', bytes: brotliCompressSync(INFLATED), isComplete: false },
  { name: 'gzip that stalls', encoding: 'gzip', bytes: gzipSync(INFLATED), isComplete: false },
  { name: 'brotli', encoding: 'br', bytes: brotliCompressSync(INFLATED), isComplete: true },
  { name: 'gzip', encoding: 'gzip', bytes: gzipSync(INFLATED), isComplete: true, isParsed: true },
];

/** Posts a chunked body; the answer is read and thrown away. */
function post(url: string, { key }: Tenant, { encoding, bytes, isComplete }: Flood): Socket {
  const { hostname, port } = new URL(url);
  const head = [
    ...['POST /platform/v1/chat HTTP/1.1', `Host: ${hostname}`, `Authorization: Bearer ${key}`],
    ...['Content-Type: application/json', `Content-Encoding: ${encoding}`, 'Transfer-Encoding: chunked'],
  ];
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined).resume();
  socket.write(`${head.join('\r\n')}\r\n\r\n${bytes.length.toString(16)}\r\n`);
  socket.write(bytes);
  socket.write(isComplete ? '\r\n0\r\n\r\n' : '\r\n');
  return socket;
}

/** E22. One ingress, so that all of it is its. */
export const bodies: Experiment = {
  name: 'E22',
  title: '200 connections with bodies of 40 bytes that inflate to 20 MiB, beside another tenant',
  lab: { ingresses: 1, workers: 1, provider: 'echo=1', models: { mobius: 'sim?first_token_ms=5&chunks=2' } },
  async run(lab, size) {
    const [attacker, neighbour] = [await lab.openTenant(1_000_000), await lab.openTenant(1_000_000)];
    const [ingress] = lab.ingresses;
    if (ingress === undefined) throw new Error('There is no ingress.');
    await paceOf(lab, neighbour, 20);
    const before = await paceOf(lab, neighbour);
    const residentBefore = await residentBytes(ingress.pid);
    let growth = 0;
    const sampling = setInterval(() => {
      void residentBytes(ingress.pid).then((bytes) => (growth = Math.max(growth, bytes - residentBefore)));
    }, SAMPLE_MS);
    const sockets: Socket[] = [];
    const figures: Record<string, number | string> = { 'p95 alone (ms)': before.p95Ms.toFixed(0) };
    const verdicts = [];
    try {
      for (const flood of FLOODS) {
        growth = 0;
        sockets.push(...range(size === 'full' ? 200 : 20, () => post(ingress.url, attacker, flood)));
        const during = await paceOf(lab, neighbour);
        figures[`${flood.name}: growth (MB), p95 (ms)`] =
          `${(growth / MEGABYTE).toFixed(0)}, ${during.p95Ms.toFixed(0)}`;
        const most = flood.isParsed === true ? COMPLETE_GROWTH_MAX : GROWTH_MAX;
        verdicts.push(
          expectThat(
            `${flood.name}: memory grows by less than ${most / MEGABYTE} MB`,
            growth < most,
            `${growth} bytes`,
          ),
          none(`${flood.name}: the other tenant is served`, during.failed),
        );
        const pace = expectSamePace(before, during);
        if (flood.isParsed !== true) verdicts.push({ ...pace, name: `${flood.name}: ${pace.name}` });
      }
      const startedAt = performance.now();
      const stalled = () => sockets.slice(0, sockets.length / 2).filter((socket) => !socket.destroyed).length;
      await lab
        .waitFor(() => stalled() === 0, 'the stalled connections to be closed', CLOSED_WITHIN_MS)
        .catch(() => undefined);
      figures['stalled connections closed after (s)'] = ((performance.now() - startedAt) / 1_000).toFixed(0);
      verdicts.push(expectThat('no stalled connection stays open', stalled() === 0, `${stalled()} are open`));
    } finally {
      clearInterval(sampling);
      for (const socket of sockets) socket.destroy();
    }
    return { figures, verdicts };
  },
};
