import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { readAdapter } from '../../../../../scripts/bench/stateful/adapter-file.ts';

let dir = '';
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'parley-adapter-'));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

async function adapterOf(content: object) {
  const file = join(dir, 'adapter.json');
  await writeFile(file, JSON.stringify(content));
  return readAdapter(file);
}

const LEAST = { name: 'mine', urls: ['http://127.0.0.1:4000/v1/'] };
const WHOLE = {
  ...LEAST,
  headers: { Authorization: 'Bearer {key}' },
  body: { model: 'other' },
  resume: { path: '/streams/{request_id}', headers: { 'Last-Event-ID': '{last_event_id}' } },
  has_balance: true,
  hooks: {
    open_account: `printf '{"key": "k-%s"}' "$TOKENS"`,
    statement: `echo '{"granted": 5, "charged": 2, "balance": 3}'`,
    kill: { gateway: 'true' },
    start: { gateway: 'true' },
  },
};

describe('readAdapter', () => {
  it('takes a name and an address, and says that everything else is not there', async () => {
    const system = await adapterOf(LEAST);

    expect(system.urls).toEqual(['http://127.0.0.1:4000/v1']);
    expect(Object.keys(system.missing)).toEqual(['requestLimits', 'accounts', 'resume', 'batches', 'kill']);
  });

  it('asks, resumes and reads the books as the file says', async () => {
    const system = await adapterOf(WHOLE);
    const account = await system.openAccount({ tokens: 7 });

    expect(Object.keys(system.missing)).toEqual(['requestLimits', 'batches']);
    expect(account).toEqual({ key: 'k-7', id: 'k-7' });
    expect(system.ask(account, { content: 'Hi', stream: true, maxTokens: 9 })).toEqual({
      path: '/chat/completions',
      headers: { 'Content-Type': 'application/json', Authorization: 'Bearer k-7' },
      body: JSON.stringify({
        ...{ model: 'other', messages: [{ role: 'user', content: 'Hi' }], stream: true, max_tokens: 9 },
      }),
    });
    expect(system.resume?.(account, 'req_1', '4')).toEqual({
      path: '/streams/req_1',
      headers: { Authorization: 'Bearer k-7', 'Last-Event-ID': '4' },
    });
    expect(await system.statement?.(account)).toEqual({ granted: 5, charged: 2, balance: 3, bookings: undefined });
  });

  it('tells a feature that could not be tried from one that is not there', async () => {
    const { missing } = await adapterOf({ ...LEAST, not_tried: { accounts: 'needs a licence' } });

    expect(missing.accounts).toEqual({ kind: 'not tried', why: 'needs a licence' });
    expect(missing.batches?.kind).toBe('not supported');
  });

  it('takes the adapter that the docs show', async () => {
    const file = join(import.meta.dirname, '../../../../../docs/benchmarks/adapters/parley.json');

    expect(Object.keys((await readAdapter(file)).missing)).toEqual(['kill']);
  });

  it('names the field that it does not know', async () => {
    await expect(adapterOf({ ...LEAST, hedaers: {} })).rejects.toThrow('hedaers is not a field of an adapter');
  });

  it('says which hook printed something else', async () => {
    const system = await adapterOf({ ...WHOLE, hooks: { ...WHOLE.hooks, statement: 'echo {}' } });

    await expect(system.statement?.({ key: 'k', id: 'k' })).rejects.toThrow(
      'The hook statement printed something else',
    );
  });
});
