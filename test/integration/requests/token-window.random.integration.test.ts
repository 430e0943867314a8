import { readFileSync } from 'node:fs';

import { expect, it } from '@jest/globals';

import { createChance } from '../../support/chance.ts';
import { openTestRedis, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

/** Admits where the limit lets it, or corrects a request of then; both as of a time that the test says. */
const STEP = `
local kind, now, tokens, limit, at = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0, ARGV[5] + 0
if kind == 'correct' then
  correct_tokens(KEYS[1], at, tokens, now)
  return {}
end
local use = read_window(KEYS[1], redis.call('HGET', KEYS[1], 'window'), now)
local before = use.tokens
if before > 0 and before + tokens > limit then
  return { before, 0, wait_for_window(use, 'tokens', math.max(0, limit - tokens), now) }
end
count_now(use, 1, tokens)
redis.call('HSET', KEYS[1], 'window', use.entries)
return { before, 1, 0 }
`;
const source = (path: string) => readFileSync(new URL(`../../../shared/${path}.lua`, import.meta.url), 'utf8');
const PARTS = ['requests/lua/account', 'requests/lua/windows'];
const SCRIPT = [...PARTS.map(source), STEP].join('\n');
const LIMIT = 5_000;
const WINDOW_SECONDS = 60;
const STEPS = 3_000;

const redis = useStarted('redis', () => openTestRedis('producer'));

interface Request {
  at: number;
  /** What the window has of it. */
  counted: number;
}

it.each([1, 2, 3])(
  'the window counts what a plain list of all requests says, at every step (%i)',
  async (seed) => {
    const chance = createChance(seed);
    const hash = `{${uniqueName('window')}}`;
    const bySecond = new Map<number, number>();
    const open: Request[] = [];
    let now = 1_800_000_000_000;
    const second = () => Math.floor(now / 1_000);
    const count = (at: number, tokens: number) => bySecond.set(at, (bySecond.get(at) ?? 0) + tokens);
    const inWindow = () => {
      for (const at of bySecond.keys()) if (at < second() - WINDOW_SECONDS) bySecond.delete(at);
      return [...bySecond.values()].reduce((sum, tokens) => sum + tokens, 0);
    };
    const sha = (await redis.script('LOAD', SCRIPT)) as string;
    const call = async (kind: string, tokens: number, at = 0) =>
      (await redis.evalsha(sha, 1, hash, kind, now, tokens, LIMIT, at)) as number[];
    const seen = { admitted: 0, refused: 0, late: 0, corrected: 0 };

    for (let step = 0; step < STEPS; step += 1) {
      // Many in one second, some a second, and now and then a time in which nothing comes.
      now += [0, 0, 20, 300, 1_000, chance.below(12) === 0 ? 40_000 : 50][chance.below(6)] ?? 0;
      const ended = chance.below(2) === 0 ? open.splice(chance.below(open.length + 1), 1)[0] : undefined;
      if (ended === undefined) {
        const tokens = 1 + chance.below(200);
        const expected = inWindow();
        const [before, isAdmitted, waitMs = 0] = await call('admit', tokens);
        const mayEnter = expected === 0 || expected + tokens <= LIMIT ? 1 : 0;
        expect([step, before, isAdmitted]).toEqual([step, expected, mayEnter]);
        if (isAdmitted === 1) {
          count(second(), tokens);
          open.push({ at: now, counted: tokens });
          seen.admitted += 1;
        } else {
          expect(waitMs).toBeGreaterThan(0);
          seen.refused += 1;
        }
        continue;
      }
      // A renewal raises it, an end takes down or raises it; one that goes on is looked at again.
      const more = chance.below(3) === 0 ? chance.below(400) : -chance.below(ended.counted + 1);
      await call('correct', more, ended.at);
      const at = Math.floor(ended.at / 1_000);
      if (at >= second() - WINDOW_SECONDS) count(at, more);
      else if (more > 0) count(second(), more);
      if (at < second() - WINDOW_SECONDS && more > 0) seen.late += 1;
      else seen.corrected += 1;
      if (more > 0 && at >= second() - WINDOW_SECONDS) open.push({ at: ended.at, counted: ended.counted + more });
    }

    expect(Math.min(...Object.values(seen))).toBeGreaterThan(50);
  },
  60_000,
);
