import { Agent } from 'node:http';

import { EVENT_LOOP_LOOK_MS } from '../../../shared/metrics/registry.ts';
import { createAnswerChecker } from '../../fuzz/check-answer.ts';
import { send } from '../../fuzz/fuzz/send.ts';
import { badInput } from '../attacks/bad-input.ts';
import type { Attack } from '../attacks/bad-input.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab, Worker } from '../lab/lab.ts';
import { readDocument } from '../lab/read-document.ts';
import { routeTo } from './routes.ts';

const HELD_UP_MAX_MS = 200;
/** As the metric shows it. */
const DELAY_MAX_SECONDS = (HELD_UP_MAX_MS + EVENT_LOOP_LOOK_MS) / 1_000;
/** The delay that an attack makes comes every time; one that comes once is the machine's. */
const TRIES = 5;
/** Larger than any body. */
const CONTEXT_WINDOW = 100_000_000;

interface Delay {
  seconds: number;
  where: string;
}

/** The longest delay of each process's event loop since it was last asked. */
async function longestDelay(lab: Lab): Promise<Delay> {
  const processes: Worker[] = [...lab.ingresses, ...lab.workers];
  const delays = await Promise.all(
    processes.map(async (process) => ({
      seconds: await lab.metric(process, 'nodejs_eventloop_lag_max_seconds'),
      where: process.name,
    })),
  );
  return delays.reduce((worst, delay) => (delay.seconds > worst.seconds ? delay : worst), { seconds: 0, where: '' });
}

/** E16. One ingress and one worker, so that whatever a body costs is theirs. */
export const badInputs: Experiment = {
  name: 'E16',
  title: 'nesting, compression bombs, charsets, __proto__, NUL, halves of characters, the largest bodies',
  lab: { ingresses: 1, workers: 1 },
  async run(lab, size) {
    await routeTo(lab, [{ provider: 'simulated', model: 'sim', contextWindow: CONTEXT_WINDOW }]);
    const tenant = await lab.openTenant(1_000_000_000);
    const checker = createAnswerChecker(await readDocument(lab));
    const agent = new Agent({ keepAlive: true });
    const wrong: string[] = [];
    const slow: string[] = [];
    let worst: Delay = { seconds: 0, where: '' };

    async function attackOnce(attack: Attack): Promise<Delay> {
      const { name, method = 'POST', path, headers = {}, body: make, statuses } = attack;
      const { 'Content-Type': contentType, 'Content-Encoding': contentEncoding, ...others } = headers;
      const bytes = make?.();
      const request = {
        kind: name,
        endpoint: undefined,
        method,
        path: `/platform/v1${path}`,
        headers: others,
        body:
          bytes === undefined
            ? undefined
            : {
                bytes,
                ...(contentType === undefined ? {} : { contentType }),
                ...(contentEncoding === undefined ? {} : { contentEncoding }),
              },
      };
      await longestDelay(lab);
      const answer = await send(request, { url: lab.urlOf(0), key: tenant.key, agent });
      if (!statuses.includes(answer.status)) wrong.push(`${name}: ${answer.status} ${answer.text.slice(0, 200)}`);
      if (answer.status >= 400) wrong.push(...checker.checkError(answer).map((fault) => `${name}: ${fault}`));
      return longestDelay(lab);
    }

    async function attackTill(attack: Attack): Promise<Delay> {
      let least: Delay = { seconds: Infinity, where: '' };
      for (let tried = 0; tried < TRIES && least.seconds > DELAY_MAX_SECONDS; tried += 1) {
        const delay = await attackOnce(attack);
        if (delay.seconds < least.seconds) least = delay;
      }
      return least;
    }

    const attacks = badInput(size);
    for (const attack of attacks) {
      const delay = await attackTill(attack).catch((error: unknown) => {
        wrong.push(`${attack.name}: no answer, ${error instanceof Error ? error.message : 'failed'}`);
        return { seconds: 0, where: '' };
      });
      if (delay.seconds > worst.seconds) worst = { ...delay, where: `${delay.where}, ${attack.name}` };
      if (delay.seconds > DELAY_MAX_SECONDS)
        slow.push(`${attack.name}: ${delay.seconds.toFixed(3)} s in ${delay.where}`);
    }
    agent.destroy();
    return {
      figures: {
        attacks: attacks.length,
        'longest delay': `${(worst.seconds * 1_000).toFixed(0)} ms (${worst.where})`,
      },
      verdicts: [
        { name: 'each has the right answer', faults: wrong },
        { name: `no event loop is held up for ${HELD_UP_MAX_MS} ms`, faults: slow },
      ],
    };
  },
};
