import { setTimeout as pause } from 'node:timers/promises';

import { randomBase62 } from '../../../shared/lifecycle/ids.ts';
import { createApiKey } from '../../../shared/domain/api-key.ts';
import type { Experiment } from '../experiment.ts';
import { expectThat, none, range } from './findings.ts';
import { expectSamePace, paceOf } from './neighbour.ts';

/** Right in form and checksum, and nobody's. */
const invented = () => createApiKey('svc', 'live', randomBase62(26)).value;
const CLIENTS = 10;
const PAUSE_MS = 100;
/** An ingress looks up 60 keys of an address a minute, a few at a time, and one a second beyond that. */
const LOOK_UPS_MAX = 64;
/** A tenant's own key is read anew every 10 s. */
const OWN_LOOK_UPS = 10;

/** E23. The flood and the tenant share an address. */
export const authenticationFlood: Experiment = {
  name: 'E23',
  title: 'thousands of invented keys, also on unknown paths, from the address of a tenant that goes on',
  needsOwnMongo: true,
  lab: { workers: 1, provider: 'echo=1', models: { mobius: 'sim?first_token_ms=5&chunks=2' }, ownPaths: true },
  async run(lab) {
    const paths = lab.ingresses.map((ingress) => lab.pathsOf(ingress).mongo);
    const tenant = await lab.openTenant(1_000_000);
    const later = await lab.openTenant(1_000_000);
    await paceOf(lab, tenant, 20);
    const before = await paceOf(lab, tenant);

    let lookUps = 0;
    // Refuses nothing: it sees each command.
    const count = (command: string, text: string) => {
      if (['find', 'aggregate'].includes(command) && text.includes(`"${command}":"keys"`)) lookUps += 1;
      return undefined;
    };
    for (const path of paths) path.failCommands(count);
    const statuses = new Map<number, number>();
    let isOver = false;
    const startedAt = performance.now();
    const attack = async (client: number) => {
      for (let turn = 0; !isOver; turn += 1) {
        const path = turn % 2 === 0 ? 'chat/req_000000000000000000000000' : 'nothing';
        const headers = { Authorization: `Bearer ${invented()}` };
        const response = await fetch(`${lab.urlOf(client + turn)}/platform/v1/${path}`, {
          headers,
          signal: lab.signal,
        });
        await response.arrayBuffer();
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        await pause(PAUSE_MS, undefined, { signal: lab.signal });
      }
    };
    const attacks = range(CLIENTS, attack);
    const during = await paceOf(lab, tenant, 120);
    isOver = true;
    await Promise.all(attacks);
    const seconds = (performance.now() - startedAt) / 1_000;
    for (const path of paths) path.failCommands(undefined);
    await pause(1_000, undefined, { signal: lab.signal });
    // A key that no ingress has seen yet, of the address that is over its limit.
    const cold = await paceOf(lab, later, 1);

    const sent = [...statuses.values()].reduce((sum, count) => sum + count, 0);
    const most = lab.ingresses.length * (LOOK_UPS_MAX + seconds + OWN_LOOK_UPS);
    const refused = statuses.get(429) ?? 0;
    return {
      figures: {
        'invented keys': sent,
        'answers 401, 404, 429': [401, 404, 429].map((status) => statuses.get(status) ?? 0).join(', '),
        'look-ups in MongoDB': lookUps,
        'p95 before, during (ms)': `${before.p95Ms.toFixed(0)}, ${during.p95Ms.toFixed(0)}`,
      },
      verdicts: [
        expectThat('MongoDB is asked a bounded number of times', lookUps <= most, `${lookUps} of ${sent} keys`),
        expectThat('the address is answered 429', refused > sent - 2 * LOOK_UPS_MAX - 20, `${refused} of ${sent}`),
        none('the tenant’s own key is served', during.failed),
        none('a key that was never seen is served a second after the flood', cold.failed),
        expectSamePace(before, during),
      ],
    };
  },
};
