import { describe, expect, it } from '@jest/globals';
import type { Stats } from '../../../../scripts/simulated-provider/stats.ts';
import { createStats } from '../../../../scripts/simulated-provider/stats.ts';

const begin = (stats: Stats, requestId: string | null = 'req_1') =>
  stats.begin({ requestId, promptTokens: 10, messages: [{ role: 'user', content: 'Hi' }] });

describe('createStats', () => {
  it('books the prompt once, with the first text', () => {
    const stats = createStats();
    const book = begin(stats);
    expect(stats.report({ detail: false })).toMatchObject({ calls: 1, in_flight: 1, prompt_tokens: 0 });

    book.text(3);
    book.text(4);
    expect(stats.report({ detail: false })).toMatchObject({ prompt_tokens: 10, completion_tokens: 7 });
  });

  it('books nothing for a call that failed before any text, and the prompt for an empty answer', () => {
    const stats = createStats();
    begin(stats).end('failed');
    expect(stats.report({ detail: false })).toMatchObject({ failed: 1, in_flight: 0, prompt_tokens: 0 });

    begin(stats).end('completed');
    expect(stats.report({ detail: false })).toMatchObject({ completed: 1, prompt_tokens: 10, completion_tokens: 0 });
  });

  it('counts the first outcome of a call only, and no text after it', () => {
    const stats = createStats();
    const book = begin(stats);
    book.end('completed');
    book.end('aborted');
    book.text(5);

    expect(stats.report({ detail: false })).toMatchObject({ completed: 1, aborted: 0, completion_tokens: 0 });
  });

  it('adds up the calls of one request id and shows the messages of the latest', () => {
    const stats = createStats();
    begin(stats).end('failed');
    const messages = [1, 2, 3];
    const book = stats.begin({ requestId: 'req_1', promptTokens: 20, messages });
    book.text(5);
    book.end('completed');
    begin(stats, null).end('completed');

    const record = { calls: 2, completed: 1, failed: 1, aborted: 0, prompt_tokens: 20, completion_tokens: 5 };
    expect(stats.report({ detail: true }).by_request).toEqual({ req_1: { ...record, messages_last: 3 } });
    expect(stats.request('req_1')).toEqual({ request_id: 'req_1', ...record, messages_last: 3, messages });
    expect(stats.request('req_2')).toBeUndefined();
  });

  it('leaves the requests out without detail', () => {
    expect(createStats().report({ detail: false })).not.toHaveProperty('by_request');
  });

  it('keeps calls in flight, and nothing else, over a reset', () => {
    const stats = createStats();
    const book = begin(stats);
    stats.moderation();
    stats.rejected();
    stats.reset();
    expect(stats.report({ detail: true })).toMatchObject({ calls: 0, in_flight: 1, moderations: 0, rejected: 0 });

    book.text(5);
    book.end('completed');
    expect(stats.report({ detail: true })).toMatchObject({ completed: 0, completion_tokens: 0, in_flight: 0 });
  });

  it('keeps the latest 50,000 request ids, and the messages of the latest 2,000', () => {
    const stats = createStats();
    for (let id = 1; id <= 50_001; id++) begin(stats, `req_${id}`).end('completed');

    expect(Object.keys(stats.report({ detail: true }).by_request ?? {})).toHaveLength(50_000);
    expect(stats.request('req_1')).toBeUndefined();
    expect(stats.request('req_48001')?.messages).toBeNull();
    expect(stats.request('req_48002')?.messages).toHaveLength(1);
    expect(stats.report({ detail: false }).calls).toBe(50_001);
  });
});
