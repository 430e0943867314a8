import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals';

import type { Principal } from '../../shared/domain/principal.ts';
import type { DeliveryRef, FinishInput, RecordSnapshot } from '../../shared/requests/delivery.ts';
import { createStreamReader } from '../../shared/requests/answers.ts';
import { lazily } from './lazily.ts';
import type { Started } from './lazily.ts';
import { endingOf, openRequestLab, SHARD } from './request-lab.ts';
import type { LabRequest, RequestLab } from './request-lab.ts';

export const IDEMPOTENCY = { name: 'a key', fingerprint: 'a print' };
export const ENTITY_HASH = 'an entity';

/** Requests of which Redis loses everything: acceptance, text, end and charge. */
interface PutBackLab {
  lab: RequestLab;
  /** A request that runs, as its worker knows it. `age`: how much longer ago it was accepted; milliseconds. */
  running(
    principal: Principal,
    age?: number,
  ): Promise<{ request: LabRequest; ref: DeliveryRef & { facts: RecordSnapshot } }>;
  /** A request that has ended, with what its worker keeps of its end. `sent`: text that went ahead. */
  ended(
    principal: Principal,
    sent?: readonly string[],
    more?: Partial<FinishInput>,
  ): Promise<{ request: LabRequest; ref: DeliveryRef; repeat: () => Promise<string> }>;
  /** Redis is as it was before the last `running` or `ended`: a power cut comes between two writes of its file. */
  rollBack(): Promise<void>;
  textOf(request: LabRequest): Promise<string>;
  /** The requests that settlement is to charge, once for each time that it was told. */
  charges(): Promise<(string | undefined)[]>;
  clear(): Promise<void>;
}

/** Redis is as it was then: what a power cut takes that comes between two writes of the append-only file. */
export async function rollBackTo(lab: RequestLab, before: Readonly<Record<string, string>>): Promise<void> {
  await lab.redis.unlink(...Object.keys(await lab.snapshot()), 'none');
  for (const [key, value] of Object.entries(before)) await lab.redis.restore(key, 0, Buffer.from(value, 'base64'));
}

async function openPutBackLab(): Promise<PutBackLab> {
  const lab = await openRequestLab();
  let before: Record<string, string> = {};
  const clear = async () => {
    await lab.redis.unlink(...Object.keys(await lab.snapshot()), 'none');
  };

  async function running(principal: Principal, age = 0) {
    before = await lab.snapshot();
    const request = await lab.admit({ principal, entityHash: ENTITY_HASH, idempotency: IDEMPOTENCY });
    const { owner, seq, remainingMs, terms, now: startedAt } = await lab.run(request, 1);
    const { tier, mode, endpoint, acceptedAt } = request.envelope;
    const facts: RecordSnapshot = {
      tier,
      mode,
      endpoint,
      acceptedAt: acceptedAt - age,
      startedAt,
      seq,
      deadline: startedAt + remainingMs,
      metadataJson: '{"a":"b"}',
      idempotency: IDEMPOTENCY,
      entityHash: ENTITY_HASH,
      terms,
    };
    return { request, ref: { ...request.ref(1), owner, facts } };
  }

  return {
    lab,
    running,
    clear,
    async ended(principal, sent = [], more = {}) {
      const { request, ref } = await running(principal);
      if (sent.length > 0) await lab.requests.append(ref, sent.length, sent);
      const ending = { ...endingOf(request, 'Hello', { prompt: 10, completion: 5 }), ...more };
      expect(await lab.requests.finish(ref, sent.length, ending, sent)).toBe(true);
      return { request, ref, repeat: () => lab.requests.replayFinish(ref, sent.length, ending, sent) };
    },
    rollBack: () => rollBackTo(lab, before),
    async textOf({ requestId }) {
      const entries = await createStreamReader(lab.redis, lab.keyspace).readFrom(SHARD, requestId, 1);
      return entries.flatMap(({ deltas }) => deltas.map((literal) => String(JSON.parse(literal)))).join('');
    },
    charges: async () => (await lab.outbox.read(SHARD, 'new', 10)).map(({ record }) => record?.requestId),
  };
}

/** For a whole test file, and empty before each test (see use-service.ts). */
export function useRestoreLab(): { puts: PutBackLab; lab: RequestLab } {
  const puts: Started<PutBackLab> = { value: undefined };
  const lab: Started<RequestLab> = { value: undefined };
  beforeAll(async () => {
    puts.value = await openPutBackLab();
    lab.value = puts.value.lab;
  });
  beforeEach(() => puts.value?.clear());
  afterAll(() => lab.value?.close());
  return { puts: lazily(puts, 'put-back lab'), lab: lazily(lab, 'request lab') };
}
