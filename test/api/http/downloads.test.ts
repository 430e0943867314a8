import { connect } from 'node:net';
import type { Socket } from 'node:net';

import { afterEach, beforeAll, expect, it } from '@jest/globals';
import request from 'supertest';

import { itemsOf, postLines } from '../../support/batch-client.ts';
import { endLines, ran } from '../../support/ended-lines.ts';
import { refusalOf } from '../../support/refusal.ts';
import { useService } from '../../support/use-service.ts';
import { waitUntil } from '../../support/wait-for.ts';

const MIB = 1024 * 1024;
const LINES = 40;
/** A batch whose results are far more than the sockets of both ends take. */
const LINE = 'x'.repeat(MIB / 2);

const service = useService({ workers: 0 });
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

let path: string;
let key: string;
beforeAll(async () => {
  const made = await service.startTenant();
  key = made.key;
  const batchId = String((await postLines(service, key, itemsOf(LINES))).body.id);
  path = `/platform/v1/batches/${batchId}/results`;
  for (let first = 0; first < LINES; first += 8)
    await endLines(
      service,
      made.tenantId,
      batchId,
      Array.from({ length: 8 }, (_, index) => ran(first + index, [LINE])),
    );
}, 60_000);

/** Asks for the results, reads their head and nothing more for a while. Resolves with the status. */
async function ask(): Promise<{ status: string; socket: Socket }> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: parley\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const head = await new Promise<string>((resolve) => {
    socket.once('data', (part: Buffer) => {
      socket.pause();
      resolve(part.toString('latin1', 0, 12));
    });
  });
  return { status: head.slice('HTTP/1.1 '.length), socket };
}

it('a tenant has at most eight downloads at a time on an ingress; when one ends the next may come', async () => {
  const open = await Promise.all(Array.from({ length: 8 }, ask));
  expect(open.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => '200'));

  const refused = refusalOf(await request(service.app).get(path).auth(key, { type: 'bearer' }));

  expect(refused).toMatchObject({ status: 429, code: 'rpm_exceeded', retryAfter: 5 });
  expect(refused.message).toContain('8 downloads');
  const stranger = await service.startTenant();
  expect((await request(service.app).get(path).auth(stranger.key, { type: 'bearer' })).status).toBe(404);
  open[0]?.socket.destroy();
  await waitUntil(async () => (await ask()).status === '200', 'a place');
});
