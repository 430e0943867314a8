import { setTimeout as pause } from 'node:timers/promises';

import { median } from '../../cases.ts';
import { ask, untilServed } from '../lab.ts';
import type { Lab } from '../lab.ts';
import { rounded } from '../measure.ts';
import type { Measure } from '../measure.ts';
import type { Account } from '../system.ts';

const EVERY_MS = 100;
const LIMIT_MS = 120_000;
const QUIET_MS = 1_000;
const QUESTION = { content: 'Hello', stream: false } as const;

interface Recovery {
  seconds: number;
  failed: number;
}

/** Sends a request every tenth of a second from the kill on, until one that was sent after the kill is answered. */
async function recover(lab: Lab, account: Account, name: string): Promise<Recovery> {
  const component = lab.system.components[name];
  if (component === undefined) throw new Error(`${lab.system.name} has no ${name}.`);
  await untilServed(lab, account);
  await pause(QUIET_MS, undefined, { signal: lab.signal });
  await component.kill();
  const killedAt = performance.now();
  const started = component.start();
  let servedAt: number | undefined;
  let failed = 0;
  const asking: Promise<void>[] = [];
  for (let index = 0; servedAt === undefined && performance.now() - killedAt < LIMIT_MS; index += 1) {
    const reply = ask(lab, { account, index, timeoutMs: 15_000 }, QUESTION).then(({ isWhole, endedAt }) => {
      if (!isWhole) failed += 1;
      else servedAt = Math.min(servedAt ?? Infinity, endedAt);
    });
    asking.push(reply);
    await pause(EVERY_MS, undefined, { signal: lab.signal });
  }
  await started;
  await Promise.all(asking);
  return { seconds: ((servedAt ?? Infinity) - killedAt) / 1_000, failed };
}

export const recovery: Measure = {
  name: 'recovery',
  title: 'Seconds from kill -9 to the next answer',
  needs: ['kill'],
  async run(lab) {
    await lab.provider.set({ tokens: 5 });
    const account = await lab.system.openAccount({});
    const figures: Record<string, number | string> = {};
    for (const name of Object.keys(lab.system.components)) {
      const runs: Recovery[] = [];
      for (let run = 0; run < (lab.size === 'full' ? 3 : 1); run += 1) runs.push(await recover(lab, account, name));
      figures[`${name}: seconds`] = rounded(median(runs.map(({ seconds }) => seconds)), 2);
      figures[`${name}: requests that failed`] = median(runs.map(({ failed }) => failed));
    }
    return { figures, verdicts: [] };
  },
};
