import { SCOPES } from '../../../shared/domain/api-key.ts';
import { runFuzz } from '../../fuzz/fuzz/run-fuzz.ts';
import { endpointsOf } from '../../fuzz/read-document.ts';
import { callJson } from '../../../scripts/harness/http.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { readDocument } from '../lab/read-document.ts';
import { expectThat } from './findings.ts';

const REQUESTS = { full: 6_000, small: 500 } as const;
/** Requests of one seed: what one tenant has of keys, webhooks and entities stays below its limits. */
const REQUESTS_PER_SEED = 1_500;
const PARALLEL = 8;

async function keysByScope(lab: Lab, key: string): Promise<Record<string, string>> {
  const made = await Promise.all(
    SCOPES.map(async (scope) => {
      const url = `${lab.urlOf(0)}/platform/v1/keys`;
      const { status, body } = await callJson('POST', url, { token: key, body: { name: scope, scopes: [scope] } });
      if (status !== 201) throw new Error(`The key for ${scope} was refused: ${JSON.stringify(body)}`);
      return [scope, String(body['value'])] as const;
    }),
  );
  return Object.fromEntries(made);
}

/** E15. Requests are made from the document that the ingress serves, and every answer is held against it. */
export const fuzzing: Experiment = {
  name: 'E15',
  title: 'fuzzing of every endpoint and scope from the API document',
  // Deletions, which are asked for as well, take answers and records away.
  lab: { settings: { TRUST_PROXY: 'loopback', PAYMENTS: 'test', ALLOW_TEST_SETTINGS: 'true' }, keepsRecords: false },
  async run(lab, size) {
    const document = await readDocument(lab);
    const count = REQUESTS[size];
    const perSeed = Math.min(count, REQUESTS_PER_SEED);
    const faults: string[] = [];
    const statuses: Record<string, number> = {};
    const succeeded = new Set<string>();
    for (let seed = 1; seed <= count / perSeed; seed += 1) {
      const { key } = await lab.openTenant(100_000_000);
      const keys = { all: key, byScope: await keysByScope(lab, key) };
      const urlOf = (index: number) => lab.urlOf(index);
      const report = await runFuzz({ document, keys, seed, urlOf, count: perSeed, parallel: PARALLEL });
      faults.push(...report.faults.map((fault) => `seed ${seed} ${fault}`));
      for (const [status, times] of Object.entries(report.statuses)) statuses[status] = (statuses[status] ?? 0) + times;
      for (const id of report.succeeded) succeeded.add(id);
    }
    const missed = endpointsOf(document).filter(({ id }) => !succeeded.has(id));
    return {
      figures: { requests: count, ...statuses },
      verdicts: [
        { name: 'every answer is as the document says, and none is a 5xx', faults },
        expectThat(
          'nearly every endpoint is reached with success',
          missed.length <= endpointsOf(document).length / 4,
          `missed: ${missed.map(({ id }) => id).join(', ')}`,
        ),
      ],
    };
  },
};
