import { beforeAll, describe, expect, it } from '@jest/globals';

import type { UsageRollUpRow } from '../../../shared/mongo/accounts/usage-repository.ts';
import { refusalOf } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useApi, useService, useTenant } from '../../support/use-service.ts';
import { waitFor } from '../../support/wait-for.ts';

const DAY = 86_400_000;
const KEY_A = `key_${'a'.repeat(24)}`;
const KEY_B = `key_${'b'.repeat(24)}`;
/** The start of a day in the past. */
const START = Date.UTC(2026, 2, 1);
const service = useService({ workers: 0 });
const tenant = useTenant(service);
const api = useApi(service, tenant);
beforeAll(async () => {
  await insert(tenant.tenantId, ROWS);
  await insert((await service.startTenant()).tenantId, ROWS);
});

type Fields = Partial<Omit<UsageRollUpRow, '_id' | 'tenantId'>>;

let last = 0;
async function insert(tenantId: string, rows: readonly Fields[]): Promise<void> {
  const all = rows.map((row) => {
    last += 1;
    const defaults = {
      width: '1d',
      startMs: START,
      keyId: KEY_A,
      tier: 'mobius',
      mode: 'live',
      endpoint: 'chat',
    } as const;
    const sums = { requests: 1, promptTokens: 10, completionTokens: 20, costMicro: 30_000_001, estimatedRequests: 0 };
    return { _id: `row${last}`, tenantId, scope: 'all' as const, entityId: '', ...defaults, ...sums, ...row };
  });
  // Thousands at once take the stand-in longer than a call may take, and the driver would send them again.
  for (let first = 0; first < all.length; first += 1_000)
    await service.models.usageRollUps.insertMany(all.slice(first, first + 1_000), { lean: true });
}

/** Two days of one tenant, as settlement writes them: every request in both scopes. */
const REQUESTS: readonly Fields[] = [
  { startMs: START },
  { startMs: START, keyId: KEY_B, tier: 'oloid', endpoint: 'chat.stream', entityId: 'a,b' },
  { startMs: START + 2 * DAY, mode: 'test', costMicro: 0, estimatedRequests: 1, entityId: 'ü' },
];
const ROWS: readonly Fields[] = [
  ...REQUESTS.map((row) => ({ ...row, entityId: '' })),
  ...REQUESTS.map((row) => ({ ...row, scope: 'entity' as const })),
];

interface Bucket {
  start_time: number;
  end_time: number;
  results: Record<string, unknown>[];
}

const bucketsOf = ({ body }: { body: { data: Bucket[] } }) => body.data;
const range = (days: number) => `start_time=${START / 1000}&end_time=${(START + days * DAY) / 1000}`;
const KINDS = {
  cached_tokens: 0,
  cache_write_tokens: 0,
  prompt_audio_tokens: 0,
  reasoning_tokens: 0,
  completion_audio_tokens: 0,
};
const NOTHING = { key_id: null, model: null, entity_id: null, mode: null, endpoint: null };

describe('GET /usage', () => {
  it('sums up by day, with the days without usage', async () => {
    const response = await api('get', `/usage?${range(3)}`);

    expect(response.body).toEqual({
      object: 'page',
      data: [
        {
          object: 'bucket',
          start_time: START / 1000,
          end_time: (START + DAY) / 1000,
          results: [
            {
              object: 'usage.result',
              requests: 2,
              prompt_tokens: 20,
              completion_tokens: 40,
              total_tokens: 60,
              ...KINDS,
              credits: 60.000002,
              estimated_requests: 0,
              ...NOTHING,
            },
          ],
        },
        { object: 'bucket', start_time: (START + DAY) / 1000, end_time: (START + 2 * DAY) / 1000, results: [] },
        {
          object: 'bucket',
          start_time: (START + 2 * DAY) / 1000,
          end_time: (START + 3 * DAY) / 1000,
          results: [expect.objectContaining({ requests: 1, credits: 0, estimated_requests: 1 })],
        },
      ],
      has_more: false,
      next_page: null,
    });
  });

  it('tells the sums apart by what is asked for', async () => {
    const groups = async (groupBy: string) => {
      const [first] = bucketsOf(await api('get', `/usage?${range(1)}&${groupBy}`));
      return first?.results;
    };
    const one = (more: object) => expect.objectContaining({ requests: 1, total_tokens: 30, ...NOTHING, ...more });

    expect(await groups('group_by=key_id')).toEqual([one({ key_id: KEY_A }), one({ key_id: KEY_B })]);
    expect(await groups('group_by=model')).toEqual([one({ model: 'mobius' }), one({ model: 'oloid' })]);
    expect(await groups('group_by=entity_id')).toEqual([one({ entity_id: null }), one({ entity_id: 'a,b' })]);
    const all = [
      one({ key_id: KEY_A, model: 'mobius', mode: 'live', endpoint: 'chat' }),
      one({ key_id: KEY_B, model: 'oloid', mode: 'live', endpoint: 'chat.stream', entity_id: 'a,b' }),
    ];
    expect(await groups('group_by=key_id,model,mode&group_by=endpoint,entity_id&group_by=model')).toEqual(all);
  });

  it.each([
    [`key_id=${KEY_B}`, 1],
    [`key_id=${KEY_A}`, 2],
    [`key_id=${KEY_A}&key_id=${KEY_B}`, 3],
    ['model=oloid', 1],
    ['entity_id=a,b', 1],
    [`entity_id=${encodeURIComponent('ü')}&mode=test`, 1],
    ['entity_id=nobody', 0],
    ['mode=live', 2],
    ['endpoint=chat.stream', 1],
    ['endpoint=chat.stream&model=mobius', 0],
    [`key_id=key_${'z'.repeat(24)}`, 0],
  ])('GET /usage has only what %s is about', async (filter, count) => {
    const buckets = bucketsOf(await api('get', `/usage?${range(3)}&${filter}`));
    const sum = buckets.flatMap(({ results }) => results).reduce((total, { requests }) => total + Number(requests), 0);
    expect(sum).toBe(count);
  });

  it('GET /usage gives pages of buckets', async () => {
    const pages: Bucket[][] = [];
    let page: string | null = '';
    while (page !== null) {
      const query: string = page === '' ? '' : `&page=${page}`;
      const { body } = await api('get', `/usage?${range(5)}&limit=2${query}`);
      pages.push(body.data as Bucket[]);
      expect(body.has_more).toBe(body.next_page !== null);
      page = body.next_page as string | null;
    }

    expect(pages.map((each) => each.length)).toEqual([2, 2, 1]);
    const days = Array.from({ length: 5 }, (_, index) => START / 1000 + (index * DAY) / 1000);
    expect(pages.flat().map(({ start_time }) => start_time)).toEqual(days);
    expect(pages.flat().flatMap(({ results }) => results)).toHaveLength(2);
  });

  it('GET /usage is this month by day without parameters', async () => {
    const own = await service.startTenant();
    const now = Date.now();
    const today = Math.floor(now / DAY) * DAY;
    await insert(own.tenantId, [{ startMs: today }]);

    const buckets = bucketsOf(await apiOf(service, own.key)('get', '/usage'));

    const date = new Date(now);
    expect(buckets[0]?.start_time).toBe(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / 1000);
    expect(buckets).toHaveLength(date.getUTCDate());
    expect(buckets.at(-1)).toMatchObject({ start_time: today / 1000, results: [{ requests: 1 }] });
  });

  it('takes whole buckets, of hours and minutes too, and ends with the one that runs', async () => {
    const own = await service.startTenant();
    const now = Math.floor(Date.now() / 60_000) * 60_000;
    await insert(own.tenantId, [{ width: '1m', startMs: now }]);
    const minutes = (query: string) => apiOf(service, own.key)('get', `/usage?bucket_width=1m&${query}`);

    const buckets = bucketsOf(await minutes(`start_time=${now / 1000 + 1}&end_time=${now / 1000 + 3_600}`));

    expect(buckets[0]).toMatchObject({ start_time: now / 1000, results: [{ requests: 1 }] });
    expect(buckets.length).toBeLessThan(3);
    const hours = bucketsOf(await api('get', `/usage?bucket_width=1h&${range(1)}`));
    expect(hours).toHaveLength(24);
    expect(hours[1]?.start_time).toBe(START / 1000 + 3_600);
  });

  it("has nothing of another tenant's, by its key neither", async () => {
    const other = await service.startTenant();
    const buckets = bucketsOf(await apiOf(service, other.key)('get', `/usage?${range(3)}&key_id=${KEY_A}`));
    expect(buckets.flatMap(({ results }) => results)).toEqual([]);
  });

  const cursor = (text: string) => Buffer.from(text).toString('base64url');
  it.each([
    ['start_time', 'start_time=yesterday'],
    ['start_time', 'start_time=-1'],
    ['start_time', 'start_time=1&start_time=2'],
    ['start_time', 'start_time=1e9'],
    ['end_time', 'end_time='],
    ['end_time', 'start_time=200&end_time=100'],
    ['end_time', 'start_time=100&end_time=100'],
    ['start_time', 'start_time=99999999999'],
    ['bucket_width', 'bucket_width=1w'],
    ['group_by[0]', 'group_by='],
    ['group_by[1]', 'group_by=key_id,tenant_id'],
    ['group_by[0]', 'group_by=__proto__'],
    ['key_id[0]', 'key_id=nobody'],
    ['model[1]', 'model=oloid&model=gpt'],
    ['entity_id[0]', 'entity_id='],
    ['mode[0]', 'mode=both'],
    ['endpoint[0]', 'endpoint=/chat'],
    ['limit', 'limit=0'],
    ['limit', 'limit=367'],
    ['limit', 'bucket_width=1h&limit=169'],
    ['limit', 'limit=ten'],
    ['groupby', 'groupby=key_id'],
    ['page', `${range(3)}&page=`],
    ['page', `${range(3)}&page=garbage`],
    ['page', `${range(3)}&page=%00`],
    ['page', `${range(3)}&page=${'x'.repeat(100)}`],
    ['page', `${range(3)}&page=${cursor(`1h:${START}`)}`],
    ['page', `${range(3)}&page=${cursor(`1d:${START + 1}`)}`],
    ['page', `${range(3)}&page=${cursor(`1d:${START + 3 * DAY}`)}`],
    ['page', `${range(3)}&page=${cursor(`1d:${START - DAY}`)}`],
    ['page', `${range(3)}&page=${cursor(`1d:${'9'.repeat(30)}`)}`],
  ])('names the parameter that is wrong: %s in %s', async (param, query) => {
    expect(refusalOf(await api('get', `/usage?${query}`))).toMatchObject({
      status: 400,
      code: 'invalid_request',
      param,
    });
  });

  it.each(['0', '100000'])('says how many buckets a page may have: limit=%s', async (limit) => {
    const { message } = refusalOf(await api('get', `/usage?limit=${limit}`));
    expect(message).toBe('`limit` must be a whole number from 1 to 366 days, 168 hours or 1440 minutes.');
  });

  it.each([
    ['limit=1&limit=2', '`limit` must be given once.'],
    ['start_time=1&start_time=2', '`start_time` must be given once.'],
    ['start_time=99999999999', '`start_time` must be earlier than `end_time`, which is now by default.'],
  ])('says what to change: %s', async (query, sentence) => {
    const { message } = refusalOf(await api('get', `/usage?${query}`));
    expect(message).toBe(sentence);
  });

  it('asks for less where a page would have more than 10,000 results', async () => {
    const own = await service.startTenant();
    const rows = Array.from({ length: 10_001 }, (_, index) => ({
      scope: 'entity' as const,
      entityId: `pupil ${index}`,
    }));
    await insert(own.tenantId, rows);

    // On a busy machine the stand-in may take longer than a call to MongoDB may take: then the caller tries again.
    const response = await waitFor(
      async () => {
        const answer = await apiOf(service, own.key)('get', `/usage?${range(1)}&group_by=entity_id`);
        return answer.status === 503 ? undefined : answer;
      },
      'an answer of MongoDB in time',
      40_000,
    );

    expect(refusalOf(response)).toMatchObject({
      status: 400,
      param: 'limit',
      message: expect.stringContaining('10000'),
    });
  }, 60_000);

  it('GET /usage says that minutes are kept for 35 days', async () => {
    const start = Math.floor(Date.now() / 1000) - 36 * 86_400;
    const refusal = refusalOf(await api('get', `/usage?bucket_width=1m&start_time=${start}`));
    expect(refusal).toMatchObject({ status: 400, param: 'start_time', message: expect.stringContaining('1h') });
  });
});
