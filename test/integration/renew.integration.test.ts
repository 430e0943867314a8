import { afterAll, beforeAll, expect, it } from '@jest/globals';

import { dayOf } from '../../shared/domain/pricing/pricing.ts';
import { FAILED, LEASE_MS, openRequestLab, RATE } from '../support/request-lab.ts';
import type { LabRequest, RequestLab } from '../support/request-lab.ts';

let lab: RequestLab;
beforeAll(async () => {
  lab = await openRequestLab();
});
afterAll(async () => {
  await lab.close();
});

/** Admission holds 10 + 90 tokens. */
async function running(balanceCredits = 1_000): Promise<LabRequest> {
  const request = await lab.admit({ principal: await lab.tenant(balanceCredits * RATE), maxTokens: 90 });
  await lab.run(request, 1);
  return request;
}

/** `usedTokens`: what the request has really used so far. */
const renew = (request: LabRequest, tokens: number, usedTokens = 0) =>
  lab.requests.renew(request.ref(1), { micro: tokens * RATE, tokens, usedMicro: usedTokens * RATE });
const holdOf = ({ requestId }: LabRequest) => lab.redis.hget(lab.keys.record(requestId), 'hold').then(Number);
const weightOf = (request: LabRequest) =>
  lab.redis.hget(lab.keys.tpmWeights(request.principal.keyId), request.requestId).then(Number);
const sumOf = (request: LabRequest) => lab.redis.hget(lab.keys.tpmWeights(request.principal.keyId), 'sum').then(Number);

it('puts off the end of the lease', async () => {
  const request = await running();
  await lab.redis.zadd(lab.keys.inflight, 1, request.requestId);

  await renew(request, 100);

  const [seconds] = await lab.redis.time();
  const end = Number(await lab.redis.zscore(lab.keys.inflight, request.requestId));
  expect(end / 1000 - Number(seconds)).toBeGreaterThan(LEASE_MS / 1000 - 2);
});

it('raises hold and token weight to what is needed, and not twice when it is sent twice', async () => {
  const request = await running();

  expect(await renew(request, 250)).toBe('ok');
  expect(await renew(request, 250)).toBe('ok');

  expect(await lab.figures(request.principal)).toMatchObject({ heldMicro: 250 * RATE, budgetHeldTokens: 250 });
  expect(await weightOf(request)).toBe(250);
  expect(await sumOf(request)).toBe(250);
});

it('never lowers what admission has taken', async () => {
  const request = await running();
  const before = await lab.figures(request.principal);

  expect(await renew(request, 5)).toBe('ok');

  expect(await lab.figures(request.principal)).toEqual(before);
  expect(await weightOf(request)).toBe(100);
});

it('holds what is left, and lets a request go on whose use that still covers', async () => {
  const request = await running(130);

  expect(await renew(request, 200, 129)).toBe('ok');

  const { bookMicro = 0, heldMicro, pendingMicro } = await lab.figures(request.principal);
  expect(heldMicro).toBe(130 * RATE);
  expect(bookMicro - pendingMicro - heldMicro).toBe(0);
});

it('says so when a request has used all that it holds and there is no more to hold', async () => {
  const request = await running(130);

  expect(await renew(request, 200, 130)).toBe('exhausted');
  expect(await holdOf(request)).toBe(130 * RATE);
});

it('lets a request that has used all that it holds go on where there is more to hold', async () => {
  const request = await running(1_000);

  expect(await renew(request, 200, 100)).toBe('ok');
  expect(await holdOf(request)).toBe(200 * RATE);
});

it('lets a request go on that needs more than is left, in the middle of its answer, and ends it later', async () => {
  const request = await running(250);

  expect(await renew(request, 240, 140)).toBe('ok');
  expect(await renew(request, 340, 240)).toBe('ok');
  expect(await renew(request, 440, 340)).toBe('exhausted');
});

it('leaves to other requests what they hold', async () => {
  const request = await running(250);
  const other = await lab.admit({ principal: request.principal, maxTokens: 90 });

  expect(other.admission.verdict).toBe('admitted');
  expect(await renew(request, 200, 150)).toBe('exhausted');

  expect(await lab.figures(request.principal)).toMatchObject({ heldMicro: 250 * RATE });
  expect(await holdOf(request)).toBe(150 * RATE);
});

it('gives back at the end all that it has ever raised', async () => {
  const request = await running(400);
  await renew(request, 150);
  await renew(request, 380);
  await renew(request, 900);

  await lab.requests.finish(request.ref(1), 0, FAILED);

  expect(await lab.figures(request.principal)).toMatchObject({
    bookMicro: 400 * RATE,
    heldMicro: 0,
    pendingMicro: 0,
    budgetHeldTokens: 0,
  });
  expect(await sumOf(request)).toBe(0);
});

it('takes the tokens of a test key from its allowance and nothing from the credits', async () => {
  const principal = await lab.tenant(0, { mode: 'test' });
  const request = await lab.admit({ principal, maxTokens: 90 });
  await lab.run(request, 1);

  expect(await renew(request, 5_000)).toBe('ok');

  const allowance = lab.keys.testAllowance(principal.tenantId, dayOf(request.admission.now));
  expect(await lab.redis.get(allowance)).toBe('5000');
  expect(await lab.figures(principal)).toMatchObject({ heldMicro: 0, budgetHeldTokens: 0 });
});

it('tells that the request was cancelled', async () => {
  const request = await running();
  await lab.redis.hset(lab.keys.record(request.requestId), 'cancel', '1');

  expect(await renew(request, 100)).toBe('cancelled');
});
