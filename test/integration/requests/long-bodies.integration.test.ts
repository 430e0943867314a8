import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { createLineStore } from '../../../shared/requests/body-store.ts';
import { defineScript } from '../../../shared/redis/scripts.ts';
import { openJobLab } from '../../support/job-lab.ts';
import type { JobLab } from '../../support/job-lab.ts';
import { REQUEST_TIMEOUT_MS, SHARD } from '../../support/request-lab.ts';
import type { LabRequest } from '../../support/request-lab.ts';

/** Of one, two, three and four bytes, with what JSON escapes and half a pair. */
const TEXT = 'Ein "Fluß"\n\\ 河 🏞 \u0001 \ud800 '.repeat(4_000);

let lab: JobLab;
beforeAll(async () => {
  lab = await openJobLab();
});
afterAll(async () => {
  await lab.close();
});

const bodyKey = ({ requestId }: LabRequest) => lab.keys.body(requestId);

/** A request without a body, and its envelope with a long text. */
async function admitted(): Promise<{ request: LabRequest; body: string }> {
  const request = await lab.admit({ withoutBody: true });
  const { envelope } = request;
  const messages = [{ role: 'user' as const, content: TEXT }];
  return { request, body: JSON.stringify({ ...envelope, request: { ...envelope.request, messages } }) };
}

function enqueue({ requestId, principal }: LabRequest, body: string): Promise<string> {
  const line = createLineStore(lab.redis, lab.keyspace, REQUEST_TIMEOUT_MS);
  return line.enqueue(SHARD, 'interactive', { requestId, tenantId: principal.tenantId, body });
}

async function take() {
  const [job] = await lab.take(1);
  if (job?.claim === undefined) throw new Error('No job was claimed.');
  return { ...job, claim: job.claim };
}

function claimOf(request: LabRequest, job: Awaited<ReturnType<typeof take>>) {
  return lab.requests.claim(request.ref(1), job.claim);
}

describe('a long body', () => {
  it('reaches the worker as it was, and no script has read it', async () => {
    const { request, body } = await admitted();
    expect(await enqueue(request, body)).toBe('accepted');
    expect(await lab.redis.get(bodyKey(request))).toBe(body);
    expect(await lab.redis.pttl(bodyKey(request))).toBeGreaterThan(REQUEST_TIMEOUT_MS);

    const job = await take();
    expect(job.claim.reply.slice(0, 2)).toEqual(['run', '']);

    const claimed = await claimOf(request, job);
    expect(claimed).toMatchObject({ kind: 'run', envelope: { request: { messages: [{ content: TEXT }] } } });
  });

  it('is stored once more by a call that is sent again, and its request waits once', async () => {
    const { request, body } = await admitted();
    await enqueue(request, body);
    expect(await enqueue(request, body)).toBe('accepted');
    const job = await take();
    expect(await enqueue(request, body)).toBe('running');
    expect(await lab.redis.pttl(bodyKey(request))).toBeGreaterThan(REQUEST_TIMEOUT_MS);
    expect(await lab.take(1)).toEqual([]);
    expect(await claimOf(request, job)).toMatchObject({ kind: 'run' });
  });

  it('leaves nothing where its admission was taken back', async () => {
    const { request, body } = await admitted();
    await lab.admissions.void(request.requestId, request.principal);
    expect(await enqueue(request, body)).toBe('void');
    expect(await lab.redis.exists(bodyKey(request))).toBe(0);
  });

  it('goes with the time of its request where the script behind it does not run', async () => {
    const { request, body } = await admitted();
    const record = lab.keys.record(request.requestId);
    await lab.admissions.void(request.requestId, request.principal);
    // The script cannot read this.
    await lab.redis.set(record, 'no hash');
    await expect(enqueue(request, body)).rejects.toThrow('WRONGTYPE');
    const leftMs = await lab.redis.pttl(bodyKey(request));
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(REQUEST_TIMEOUT_MS);
  });

  it('that did not arrive puts nothing into line', async () => {
    const { request } = await admitted();
    const { requestId } = request;
    const add = defineScript(lab.redis, 'enqueue', ['window', 'line']);
    const job = lab.keys.job('interactive', requestId);
    const keys = [lab.keys.record(requestId), bodyKey(request), job, lab.keys.line('interactive')];
    const queue = [lab.keys.marker('interactive'), lab.keys.queueMeta('interactive')];
    expect(await add([...keys, ...queue], [requestId, '', 1_000, 'chat', '{}', '{}'])).toBe('bodiless');
    expect(await lab.redis.exists(job)).toBe(0);
  });

  it('that goes before it is read is asked for once more, and then missed as any other', async () => {
    const { request, body } = await admitted();
    await enqueue(request, body);
    const job = await take();
    await lab.redis.del(bodyKey(request));
    expect(await claimOf(request, job)).toEqual({ kind: 'drop', reason: 'no_body running' });
  });
});
