import { setTimeout as pause } from 'node:timers/promises';

import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, SLACK_MS } from './findings.ts';
import { routeTo } from './routes.ts';

const REQUESTS = { full: 60, small: 20 } as const;
const AWAY = 'sim?fail=status&status=503';
const WELL = 'sim?first_token_ms=1000&chunks=5';
const PATH = '/admin/v1/requests/replay';

interface Found {
  status: string;
  response: { choices: { message: { content: string } }[] } | null;
}

async function call<Body>(lab: Lab, key: string, index: number, path: string, content?: string): Promise<Body> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', Prefer: 'respond-async' };
  const body = JSON.stringify({ messages: [{ role: 'user', content }] });
  const sent = content === undefined ? {} : { method: 'POST', body };
  const answer = await fetch(`${lab.urlOf(index)}/platform/v1${path}`, { headers, signal: lab.signal, ...sent });
  // What the API says (docs/guide/chat.md).
  return (await answer.json()) as Body;
}

/** E27: what an outage has failed is replayed by two calls at once, and a worker dies meanwhile. */
export const outageReplayed: Experiment = {
  name: 'E27',
  title: '60 asynchronous requests fail in an outage and are replayed, by two calls at once and with a worker killed',
  lab: {},
  async run(lab, size) {
    const total = REQUESTS[size];
    const { key, tenantId } = await lab.openTenant(1_000_000);
    const replay = (more: object) => lab.admin().send('POST', PATH, { tenant_id: tenantId, limit: 500, ...more });
    const matched = async () => Number((await replay({ dry_run: true }))['matched']);
    const look = (ids: readonly string[]) =>
      Promise.all(ids.map((id, index) => call<Found>(lab, key, index, `/chat/${id}`)));
    const settings = { breaker: { min_attempts: 1_000_000 } };
    await routeTo(lab, [{ provider: 'only', model: AWAY }], settings);
    await pause(SLACK_MS, undefined, { signal: lab.signal });
    const ids: string[] = [];
    for (let index = 0; index < total; index += 1)
      ids.push((await call<{ id: string }>(lab, key, index, '/chat', `Question ${index}`)).id);
    await lab.waitFor(async () => (await matched()) === total, 'all requests to have failed', 60_000);
    const before = await look(ids);

    await routeTo(lab, [{ provider: 'only', model: WELL }], settings);
    await pause(SLACK_MS, undefined, { signal: lab.signal });
    const startedAt = performance.now();
    const both = Promise.all([replay({}), replay({})]);
    await pause(500, undefined, { signal: lab.signal });
    await lab.workers[0]?.kill();
    const replayed = (await both).map((report) => Number(report['replayed']));
    const answered = async () => (await look(ids)).every(({ status }) => status === 'completed');
    // A key may look 600 times a minute.
    while (!(await answered()) && performance.now() - startedAt < 60_000)
      await pause(10_000, undefined, { signal: lab.signal });

    const after = await look(ids);
    const texts = after.filter(({ response }) => (response?.choices[0]?.message.content ?? '') !== '');
    const left = await matched();
    return {
      figures: { 'replayed by either call': replayed.join(' and '), 'left to replay': left },
      verdicts: [
        expectThat(
          'all have failed before',
          before.every(({ status }) => status === 'failed'),
          'some have not',
        ),
        expectThat(
          'each is replayed by one call',
          replayed.reduce((sum, count) => sum + count, 0) === total,
          replayed.join(' and '),
        ),
        expectThat('every old id answers', texts.length === total, `${texts.length} of ${total}`),
        expectThat('nothing is left to replay', left === 0, String(left)),
      ],
      judge: ({ ledger }) => {
        const charged = ledger.filter(({ type }) => type === 'usage').map(({ requestId }) => requestId);
        return [
          expectThat(
            'one charge for each',
            charged.length === total && ids.every((id) => charged.includes(id)),
            `${charged.length} charges`,
          ),
        ];
      },
    };
  },
};
