import { setTimeout as pause } from 'node:timers/promises';

import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { startProxy } from '../lab/proxy.ts';
import type { ProxyKind } from '../lab/proxy.ts';
import { expectThat, isWhole, none, range } from './findings.ts';
import { routeTo } from './routes.ts';

/** Longer than the 60 s that nginx and others wait by default. */
const ANSWER_MS = 90_000;
/** Two pings before the first text. */
const SILENT_MS = 35_000;
const BODY_BYTES = 15 * 1024 * 1024;
const FROZEN_MS = 15_000;
const CLIENTS = 20;
/** The default, for which the page's settings are made. */
const DRAIN_SECONDS = 5;

const settings = { REQUIRE_HTTPS: 'false', TRUST_PROXY: 'loopback', DRAIN_SECONDS: String(DRAIN_SECONDS) };

async function through<T>(kind: ProxyKind, lab: Lab, act: (url: string) => Promise<T>): Promise<T> {
  const proxy = await startProxy(kind, lab.ingresses, lab.signal);
  try {
    return await act(proxy.url);
  } finally {
    await proxy.stop();
  }
}

/** Clients that send one request after the other until `end` is called; every third asks for a complete answer. */
function startClients(lab: Lab, url: string, tenant: Parameters<Lab['caller']['send']>[0]['tenant']) {
  let isOver = false;
  const sent: SentRequest[] = [];
  const all = Promise.all(
    range(CLIENTS, async (number) => {
      for (let turn = 0; !isOver; turn += 1) {
        const one = lab.caller.send({ url, tenant, stream: (number + turn) % 3 !== 0 });
        sent.push(one);
        await one.ended;
      }
    }),
  );
  return {
    sent,
    end: () => {
      isOver = true;
      return all;
    },
  };
}

function behind(kind: ProxyKind, name: string): Experiment {
  return {
    name,
    title: `behind ${kind}: 35 s of silence, an answer of 90 s, a body of 15 MiB, a frozen MongoDB`,
    needsOwnMongo: true,
    lab: { provider: 'echo=1', settings, models: { mobius: 'sim?chunks=4&chunk_ms=50' } },
    run: (lab) =>
      through(kind, lab, async (url) => {
        const tenant = await lab.openTenant(10_000_000);
        const large = lab.caller.send({ url, tenant, body: { filler: 'x'.repeat(BODY_BYTES) } });
        await large.ended;

        const clients = startClients(lab, url, tenant);
        await lab.waitFor(() => clients.sent.filter(isWhole).length > CLIENTS * 2, 'the first answers');
        const before = clients.sent.length;
        lab.mongo.current().pause();
        await pause(FROZEN_MS, undefined, { signal: lab.signal });
        const meanwhile = clients.sent.length - before;
        lab.mongo.current().resume();
        await clients.end();

        const slow = (model: string) =>
          routeTo(lab, [{ provider: 'slow', model }], { timeout_ms: 110_000, first_token_timeout_ms: 60_000 });
        await slow(`sim?first_token_ms=${SILENT_MS}&chunks=4`);
        await pause(2_000, undefined, { signal: lab.signal });
        const silent = lab.caller.send({ url, tenant });
        await lab.waitFor(
          async () => (await lab.providerCounts()).has(silent.id()) || silent.last().end !== 'open',
          'its call',
          60_000,
        );
        await slow(`sim?first_token_ms=${ANSWER_MS}&chunks=4`);
        await pause(2_000, undefined, { signal: lab.signal });
        const complete = lab.caller.send({ url, tenant, stream: false });
        await Promise.all([silent.ended, complete.ended]);

        const tookMs = complete.last().endedAt - complete.last().sentAt;
        return {
          figures: { 'while MongoDB was frozen': meanwhile, 'complete answer (s)': (tookMs / 1000).toFixed(0) },
          verdicts: [
            none(
              'every answer is whole',
              [large, silent, complete, ...clients.sent].filter((sent) => !isWhole(sent)),
            ),
            expectThat('the answer takes 90 s', tookMs >= ANSWER_MS, `it took ${tookMs} ms`),
            expectThat('calls go on while MongoDB is frozen', meanwhile > CLIENTS, `only ${meanwhile}`),
          ],
        };
      }),
  };
}

function restarts(kind: ProxyKind, name: string, count: number): Experiment {
  return {
    name,
    title: `${count} restarts of ingresses behind ${kind} at ${CLIENTS} clients`,
    lab: { provider: 'echo=1', settings, models: { mobius: 'sim?chunks=10&chunk_ms=50' } },
    run: (lab) =>
      through(kind, lab, async (url) => {
        const tenant = await lab.openTenant(10_000_000);
        const clients = startClients(lab, url, tenant);
        await lab.waitFor(() => clients.sent.filter(isWhole).length > CLIENTS, 'the first answers');
        for (let restart = 0; restart < count; restart += 1) {
          // The list has the ended ones, too.
          const old = lab.ingresses.at(-2);
          if (old === undefined) throw new Error('There is no ingress.');
          await old.stop();
          await lab.startIngress({ PORT: new URL(old.url).port });
        }
        await clients.end();
        const broken = clients.sent.filter((sent) => !isWhole(sent));
        return {
          figures: {
            requests: clients.sent.length,
            '502 and the like': broken.filter((sent) => sent.last().status >= 500).length,
            resets: broken.filter((sent) => sent.last().status === 0).length,
            cut: broken.filter((sent) => sent.last().status === 200).length,
          },
          verdicts: [none('every answer is whole, and none was refused', broken)],
        };
      }),
  };
}

/** E50. The settings are those of docs/guide/proxies.md. */
export const behindNginx = behind('nginx', 'E50');
/** E50b. */
export const behindHaproxy = behind('haproxy', 'E50b');
/** E51. */
export const restartsBehindNginx = restarts('nginx', 'E51', 20);
/** E51b. */
export const restartsBehindHaproxy = restarts('haproxy', 'E51b', 5);
