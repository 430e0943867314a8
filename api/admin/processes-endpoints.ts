import { pageOf, toListPage } from '../../shared/contracts/list-page.ts';
import type { ProcessEntry, ProcessRegistry } from '../../shared/redis/stores/process-registry.ts';
import { defineAdminEndpoint, exampleList, json, listQuery, ok } from '../contract/endpoint.ts';
import { boolean, constant, integer, named, object, oneOf, pageSchema, text } from '../contract/json-schema.ts';
import type { FieldsOf } from '../contract/json-schema.ts';

export interface ProcessesDeps {
  processes: ProcessRegistry;
}

const fields = {
  id: text('Of this run of the process.'),
  object: constant('process'),
  kind: oneOf(['ingress', 'worker']),
  version: text(),
  commit: text('`REVISION`, which the image sets.'),
  protocol: integer('An ingress waits for workers that know at least its own.', 0),
  host: text(),
  pid: integer(undefined, 0),
  uptime_seconds: integer(undefined, 0),
  running: integer('Requests that a worker runs, or answers that an ingress relays.', 0),
  draining: boolean('It was told to stop and takes nothing more.'),
};

function toProcess({ uptimeSeconds, ...entry }: ProcessEntry) {
  return { ...entry, object: 'process', uptime_seconds: uptimeSeconds } satisfies FieldsOf<typeof fields>;
}

const EXAMPLE = toProcess({
  id: 'wrk_0123456789abcdefghijklmn',
  kind: 'worker',
  version: '0.1.0',
  commit: '801118b4',
  protocol: 1,
  host: 'parley-worker-7d9f',
  pid: 7,
  uptimeSeconds: 86_400,
  running: 40,
  draining: false,
});

/** docs/spec.md#upgrades. */
export const processesEndpoints = {
  listProcesses: defineAdminEndpoint({
    method: 'GET',
    path: '/processes',
    tag: 'Processes',
    summary: 'List processes',
    description: 'Those that have been heard of within ten seconds.',
    query: listQuery,
    answers: { 200: json('A page of processes.', named('ProcessList', pageSchema(named('Process', object(fields))))) },
    examples: { all: { query: { order: 'asc' }, status: 200, answer: exampleList(EXAMPLE) } },
    async handle({ query }, { processes }: ProcessesDeps) {
      const page = pageOf(await processes.list(), query, ({ id }) => id);
      return ok(toListPage(page, query.limit, toProcess));
    },
  }),
};
