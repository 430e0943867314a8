import { beforeAll, expect, it } from '@jest/globals';

import { ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import { createComplianceJobRepository } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import type { ComplianceJobRow } from '../../../shared/mongo/compliance/compliance-job-repository.ts';
import { createComplianceWorkRepository } from '../../../shared/mongo/compliance/compliance-work-repository.ts';
import type { ComplianceWorkRepository } from '../../../shared/mongo/compliance/compliance-work-repository.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const NOW = 1_000_000;
const LATER = NOW + 30_000;

let jobs: ComplianceWorkRepository;
let insert: (row: ComplianceJobRow) => Promise<boolean>;
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('turns-')));
beforeAll(async () => {
  await ensureIndexes(mongo);
  jobs = createComplianceWorkRepository(mongo);
  ({ insert } = createComplianceJobRepository(mongo));
});

let count = 0;
/** A job that waits; the ones that are made first come first. */
async function add(
  tenantId: string,
  more: Partial<ComplianceJobRow> = {},
): Promise<{ tenantId: string; jobId: string }> {
  count += 1;
  const kind = more.kind ?? 'deletion';
  const jobId = `${kind === 'export' ? 'exp' : 'del'}_${count}`;
  const row = { _id: jobId, tenantId, kind, scope: 'entity', entityId: `pupil-${count}`, status: 'queued' } as const;
  await insert({ ...row, claim: 0, claimedUntil: NOW, createdAt: NOW + count, ...more });
  return { tenantId, jobId };
}

const claim = (job: { tenantId: string; jobId: string }, now = NOW) => jobs.claim(job, now, now + 30_000);

it('gives a tenant one deletion and one export at a time, and others theirs', async () => {
  const [first, second, exported] = [await add('ten_a'), await add('ten_a'), await add('ten_a', { kind: 'export' })];
  const other = await add('ten_b');

  const taken = await claim(first);

  expect(taken).toMatchObject({ _id: first.jobId, claim: 1 });
  expect(await claim(second)).toBeUndefined();
  expect(await claim(exported)).toMatchObject({ _id: exported.jobId });
  expect(await claim(other)).toMatchObject({ _id: other.jobId });

  if (taken !== undefined) await jobs.completeDeletion(taken, undefined, NOW);
  expect(await jobs.next({ tenantId: 'ten_a', kind: 'deletion' }, NOW)).toEqual(second);
  const next = await claim(second);
  expect(next).toMatchObject({ _id: second.jobId, claim: 1 });
  if (next !== undefined) await jobs.fail(next, 'in vain', NOW);
});

it('lets the deletions of entities that wait go with the one whose turn it is, and nothing else', async () => {
  const [first, second, third] = [await add('ten_g'), await add('ten_g'), await add('ten_g', { mode: 'test' })];
  await add('ten_g', { kind: 'export' });
  await add('ten_g', { scope: 'tenant' });
  await add('ten_h');
  const later = await add('ten_g', { claimedUntil: LATER });
  const taken = await claim(first);
  if (taken === undefined) throw new Error('It is not claimed');

  const beside = await jobs.claimBeside(taken, NOW, LATER);

  expect(beside.map(({ _id, status }) => [_id, status])).toEqual(
    [second, third].map(({ jobId }) => [jobId, 'in_progress']),
  );
  expect(await jobs.claimBeside(taken, NOW, LATER)).toEqual([]);
  await jobs.completeDeletion(taken, undefined, NOW);
  // Their worker has died: the next turn takes them along.
  const next = await claim(later, LATER);
  if (next === undefined) throw new Error('It is not claimed');
  expect((await jobs.claimBeside(next, LATER, LATER + 1)).map(({ claim: number }) => number)).toEqual([2, 2]);
});

it('gives the turn on when a job is given up for a while', async () => {
  const [first, second] = [await add('ten_c'), await add('ten_c')];
  const taken = await claim(first);
  if (taken !== undefined) await jobs.release(taken, LATER);

  expect(await jobs.next({ tenantId: 'ten_c', kind: 'deletion' }, NOW)).toEqual(second);
  expect(await claim(second)).toMatchObject({ _id: second.jobId });
});

it('lets a job whose worker has died go on before the others of its tenant', async () => {
  const [older, dying] = [await add('ten_d'), await add('ten_d')];
  await claim(dying);

  const dueFor = async (tenantId: string, now: number) =>
    (await jobs.due(now, 200)).filter((job) => job.tenantId === tenantId);

  expect(await dueFor('ten_d', LATER)).toEqual([dying]);
  expect(await claim(older, LATER)).toBeUndefined();
  expect(await claim(dying, LATER)).toMatchObject({ _id: dying.jobId, claim: 2 });
});

it('names one job of each tenant and kind that are due, however many wait', async () => {
  const [first] = [await add('ten_e'), await add('ten_e'), await add('ten_e')];
  const exported = await add('ten_e', { kind: 'export' });

  const due = (await jobs.due(NOW, 200)).filter(({ tenantId }) => tenantId === 'ten_e');
  expect(due).toHaveLength(2);
  expect(due).toEqual(expect.arrayContaining([first, exported]));
});
