#!/usr/bin/env node
/**
 * `parley`: the administration from a terminal (docs/guide/administration.md#the-command-line). It calls the administration's
 * API and nothing else, so it works wherever that port is reached, and in every container of the image.
 */
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { Command, Option } from 'commander';
import createClient from 'openapi-fetch';

import { BUILD } from '../shared/config/load-config.ts';
import type { paths } from './admin-api.d.ts'; // npm run types
import { allPages, withPage } from './all-pages.ts';
import { jsonObject, recordOf, tableOf, wholeNumber } from './parley-text.ts';
import type { Row } from './parley-text.ts';

type Client = ReturnType<typeof createClient<paths>>;
type RequestStatus = NonNullable<NonNullable<paths['/requests']['get']['parameters']['query']>['status']>;
type Group = NonNullable<NonNullable<paths['/usage']['get']['parameters']['query']>['group_by']>[number];
type Tier = paths['/models/{name}']['put']['requestBody']['content']['application/json']['tier'];
/** A page of usage or of margins. */
interface Buckets {
  data: readonly { start_time: number; results: readonly Row[] }[];
}

/** A fault of the call: its message is all that the caller is told. */
class Refused extends Error {}

const GROUPS: Record<Group, true> = {
  tenant_id: true,
  key_id: true,
  tier: true,
  provider: true,
  model: true,
  mode: true,
  endpoint: true,
};

type Call<Data> = Promise<{ data?: Data; error?: unknown; response: Response }>;

/** The answer, or the API's own sentence about what is wrong. */
async function answerOf<Data>(call: Call<Data>): Promise<Data> {
  const { data, error, response } = await call;
  if (data !== undefined && data !== null) return data;
  const { message, request_id: id } =
    (error as { error?: { message?: string; request_id?: string } } | undefined)?.error ?? {};
  throw new Refused(
    `${message ?? `The administration answered ${response.status}.`}${id === undefined ? '' : ` (${id})`}`,
  );
}

const processesOf = (client: Client) => allPages((query) => answerOf(client.GET('/processes', { params: { query } })));
const queuesOf = (client: Client) => allPages((query) => answerOf(client.GET('/queues', { params: { query } })));
const breakersOf = (client: Client) => allPages((query) => answerOf(client.GET('/breakers', { params: { query } })));

type Finding = Readonly<{ state: 'ok' | 'look' | 'bad'; what: string; finding: string }>;

/** A clock that is further away than this makes signatures, limits and logs hard to trust; milliseconds. */
const CLOCK_MS = 5_000;
/** Waiting requests that are older than this have no worker, or a provider that is full. */
const OLD_SECONDS = 60;

/** The first questions of an operator, with their answers. */
async function examine(client: Client, deepHealth: () => Promise<Response>): Promise<Finding[]> {
  const [{ data: processes }, { data: queues }, { data: breakers }, settlement] = await Promise.all([
    processesOf(client),
    queuesOf(client),
    breakersOf(client),
    answerOf(client.GET('/settlement')),
  ]);
  const sentAt = Date.now();
  const deep = await deepHealth();
  const { checks = {} } = (await deep.json()) as { checks?: Record<string, string> };
  const findings: Finding[] = [];
  const find = (what: string, isFine: boolean, finding: string, otherwise: Finding['state'] = 'bad') =>
    findings.push({ state: isFine ? 'ok' : otherwise, what, finding });
  for (const [store, word] of Object.entries(checks)) find(store, word === 'ok', word);
  const aheadMs = Date.parse(deep.headers.get('date') ?? '') - sentAt;
  find('clock', Math.abs(aheadMs) < CLOCK_MS, `${Math.round(aheadMs / 1_000)} s from this machine's`, 'look');
  const workers = processes.filter(({ kind, draining }) => kind === 'worker' && !draining);
  find('workers', workers.length > 0, `${workers.length} of ${processes.length} processes`);
  const versions = [...new Set(processes.map(({ version, commit }) => `${version} ${commit}`))];
  find('versions', versions.length < 2, versions.join(', '), 'look');
  for (const { id, waiting, oldest_age_seconds: age, paused } of queues)
    find(
      `queue ${id}`,
      age < OLD_SECONDS && !paused,
      paused ? 'paused' : `${waiting} wait, the oldest for ${age} s`,
      'look',
    );
  for (const { id, state, reason } of breakers)
    find(`provider ${id}`, state === 'closed', reason === null ? state : `${state}: ${reason}`);
  const { dead_letters: dead, lag_seconds: lag } = settlement;
  find('settlement', dead === 0 && lag < OLD_SECONDS, `${dead} dead letters, ${lag} s behind`);
  return findings;
}

interface Shell {
  /** Undefined: nothing is printed. */
  env: Readonly<Record<string, string | undefined>>;
  print: (text: string) => void;
}

export function createParley({ env, print }: Shell): Command {
  const program = new Command('parley')
    .description('The administration of Parley from a terminal.')
    .addOption(
      new Option('--url <url>', "the administration's address")
        .env('PARLEY_ADMIN_URL')
        .default('http://127.0.0.1:8081'),
    )
    .option('--json', "print the API's answer as it is")
    .addHelpText('after', '\nThe token of an administrator comes from PARLEY_ADMIN_TOKEN or ADMIN_TOKEN.')
    .showSuggestionAfterError();
  const optionsOf = () => program.opts<{ url: string; json?: true }>();

  function authorization(): { Authorization: string } {
    const token = env['PARLEY_ADMIN_TOKEN'] ?? env['ADMIN_TOKEN'];
    if (token === undefined || token === '')
      throw new Refused('Set PARLEY_ADMIN_TOKEN (or ADMIN_TOKEN) to the token of an administrator.');
    return { Authorization: `Bearer ${token}` };
  }
  const client = (): Client =>
    createClient<paths>({ baseUrl: `${optionsOf().url}/admin/v1`, headers: authorization() });
  function show(answer: unknown, people: () => string): void {
    print(optionsOf().json === true ? JSON.stringify(answer, null, 2) : people());
  }
  const showList = (answer: { data: readonly Row[]; has_more?: boolean }, columns?: string[]) => {
    show(answer, () => tableOf(answer.data, columns) + (answer.has_more === true ? '\nThere are more: --limit.' : ''));
  };
  async function many(call: Call<{ data: readonly Row[]; has_more: boolean }>, columns: string[]): Promise<void> {
    showList(await answerOf(call), columns);
  }
  async function one(call: Call<Row>): Promise<void> {
    const answer = await answerOf(call);
    show(answer, () => recordOf(answer));
  }
  const limit = () => new Option('--limit <n>', 'the most to show').argParser(wholeNumber).default(20);

  const tenants = program.command('tenants').description('list, create and change tenants');
  const TENANT_COLUMNS = ['id', 'name', 'status', 'balance', 'held', 'shard', 'created_at'];
  tenants
    .command('list', { isDefault: true })
    .addOption(limit())
    .action((query: { limit: number }) => many(client().GET('/tenants', { params: { query } }), TENANT_COLUMNS));
  tenants
    .command('create')
    .argument('<name>')
    .option('--credits <n>', 'granted at once', Number)
    .action(async (name: string, { credits }: { credits?: number }) => {
      const body = credits === undefined ? { name } : { name, credits };
      await one(client().POST('/tenants', { body }));
    });
  const ofTenant = (tenant_id: string) => ({ params: { path: { tenant_id } } });
  tenants
    .command('show')
    .argument('<tenant>')
    .action((tenant: string) => one(client().GET('/tenants/{tenant_id}', ofTenant(tenant))));
  for (const [name, status] of [
    ['suspend', 'suspended'],
    ['activate', 'active'],
  ] as const) {
    tenants
      .command(name)
      .argument('<tenant>')
      .action((tenant: string) =>
        one(client().PATCH('/tenants/{tenant_id}', { ...ofTenant(tenant), body: { status } })),
      );
  }
  tenants
    .command('close')
    .description('for good: deletes all but money and the audit log')
    .argument('<tenant>')
    .requiredOption('--yes', 'confirms it')
    .action((tenant: string) => one(client().DELETE('/tenants/{tenant_id}', ofTenant(tenant))));
  tenants
    .command('grant')
    .description('grant credits, or take them with a negative number')
    .argument('<tenant>')
    .argument('<credits>', 'how many', Number)
    .option('--reason <text>', 'shown to the tenant', '')
    .requiredOption('--key <text>', 'an Idempotency-Key: the same one books once')
    .action((tenant: string, credits: number, { reason, key }: { reason: string; key: string }) =>
      one(
        client().POST('/tenants/{tenant_id}/credits', {
          params: { path: { tenant_id: tenant }, header: { 'Idempotency-Key': key } },
          body: { credits, reason },
        }),
      ),
    );

  const ofKey = (tenant_id: string, key_id: string) => ({ params: { path: { tenant_id, key_id } } });
  const keys = program.command('keys').description("list, create, change and revoke a tenant's keys");
  keys
    .command('list', { isDefault: true })
    .argument('<tenant>')
    .addOption(limit())
    .action(async (tenant: string, query: { limit: number }) => {
      const call = client().GET('/tenants/{tenant_id}/keys', { params: { path: { tenant_id: tenant }, query } });
      await many(call, ['id', 'name', 'mode', 'status', 'scopes', 'redacted_value', 'last_used_at', 'expires_at']);
    });
  keys
    .command('create')
    .description('the value is shown this once')
    .argument('<tenant>')
    .option('--name <name>')
    .addOption(new Option('--mode <mode>').choices(['live', 'test']))
    .option('--scopes <scopes...>', 'all where none is named')
    .action((tenant: string, body: { name?: string; mode?: 'live' | 'test'; scopes?: never[] }) =>
      one(client().POST('/tenants/{tenant_id}/keys', { ...ofTenant(tenant), body })),
    );
  keys
    .command('change')
    .description('null removes a limit or the expiry; what is not named stays')
    .argument('<tenant>')
    .argument('<key>')
    .argument('<fields>', `as JSON: '{"rpm": 30, "scopes": ["chat"]}'`, jsonObject)
    .action((tenant: string, key: string, body: object) =>
      one(client().PATCH('/tenants/{tenant_id}/keys/{key_id}', { ...ofKey(tenant, key), body })),
    );
  keys
    .command('revoke')
    .argument('<tenant>')
    .argument('<key>')
    .action((tenant: string, key: string) =>
      one(client().DELETE('/tenants/{tenant_id}/keys/{key_id}', ofKey(tenant, key))),
    );

  const models = program.command('models').description('list, publish and withdraw names that callers may ask for');
  models
    .command('list', { isDefault: true })
    .addOption(limit())
    .action((query: { limit: number }) =>
      many(client().GET('/models', { params: { query } }), ['id', 'tier', 'target', 'updated_at']),
    );
  const named = (name: string) => ({ params: { path: { name } } });
  models
    .command('publish')
    .argument('<name>')
    .argument('<tier>', 'that serves it, at its rates')
    .option('--target <provider/model>', 'the one target of the tier that serves it; all do where none is named')
    .action(async (name: string, tier: string, { target }: { target?: string }) => {
      const [provider = '', ...model] = target?.split('/') ?? [];
      const body = {
        // The API names the tiers that there are.
        tier: tier as Tier,
        target: target === undefined ? null : { provider, model: model.join('/') },
      };
      await one(client().PUT('/models/{name}', { ...named(name), body }));
    });
  models
    .command('remove')
    .argument('<name>')
    .action((name: string) => one(client().DELETE('/models/{name}', named(name))));

  program
    .command('usage')
    .description('what tenants use; with --margin what it costs and earns')
    .addOption(new Option('--by <group...>', 'what to group by').choices(Object.keys(GROUPS)).default(['tenant_id']))
    .addOption(new Option('--days <n>', 'of the latest days').argParser(wholeNumber).default(1))
    .option('--margin', 'cost, price and margin')
    .action(async ({ by, days, margin }: { by: Group[]; days: number; margin?: true }) => {
      if (days > 365) throw new Refused('--days is at most 365.');
      const end_time = Math.floor(Date.now() / 1_000);
      const query = { start_time: end_time - days * 86_400, end_time, group_by: by, limit: days + 1 };
      const call =
        margin === true
          ? client().GET('/margin', { params: { query } })
          : client().GET('/usage', { params: { query } });
      const answer = await answerOf<Buckets | string>(call);
      const rows = (typeof answer === 'string' ? [] : answer.data).flatMap(({ start_time, results }) =>
        results.map((result) => ({ day: new Date(start_time * 1_000).toISOString().slice(0, 10), ...result })),
      );
      const money = margin === true ? ['cost', 'currency', 'price', 'price_currency', 'margin'] : [];
      show(answer, () => tableOf(rows, ['day', ...by, 'requests', 'total_tokens', 'credits', ...money]));
    });

  const providers = program.command('providers').description('list, change and test providers');
  providers
    .command('list', { isDefault: true })
    .description('with their circuit breakers')
    .action(async () => {
      const [known, breakers] = await Promise.all([
        allPages((query) => answerOf(client().GET('/providers', { params: { query } }))),
        breakersOf(client()),
      ]);
      const rows = known.data.map(({ id, kind, base_url }) => {
        const { state, reason, recent_calls, recent_failures } = breakers.data.find((one) => one.id === id) ?? {};
        return { name: id, kind, base_url, breaker: state, reason, recent_calls, recent_failures };
      });
      show({ providers: known, breakers }, () => tableOf(rows));
    });
  providers
    .command('change')
    .description('what is not named stays')
    .argument('<provider>')
    .argument('<fields>', `as JSON: '{"max_in_flight": 8}'`, jsonObject)
    .action((provider: string, body: object) =>
      one(client().PATCH('/providers/{provider}', { params: { path: { provider } }, body })),
    );
  providers
    .command('test')
    .description('a worker sends it one short chat; exit code 1 where that fails')
    .argument('<provider>')
    .option('--model <model>', 'by default that of its first target')
    .action(async (provider: string, body: { model?: string }) => {
      const call = client().POST('/providers/{provider}/test', { params: { path: { provider } }, body });
      const answer = await answerOf(call);
      show(answer, () => recordOf(answer));
      if (!answer.ok) process.exitCode = 1;
    });

  program
    .command('requests')
    .description('how requests ended, newest first; refused ones are samples')
    .option('--tenant <tenant>')
    .addOption(new Option('--status <status>').choices(['completed', 'failed', 'cancelled', 'refused']))
    .option('--provider <provider>')
    .addOption(limit())
    .action(
      async ({ tenant, ...filter }: { tenant?: string; provider?: string; status?: RequestStatus; limit: number }) => {
        const query = { ...filter, ...(tenant === undefined ? {} : { tenant_id: tenant }) };
        const columns = ['id', 'created_at', 'tenant_id', 'endpoint', 'status', 'error_code', 'provider', 'credits'];
        await many(client().GET('/requests', { params: { query } }), columns);
      },
    );
  program
    .command('request')
    .description('one request: what became of it, and when')
    .argument('<request>')
    .action(async (request: string) => {
      const params = { path: { request_id: request } };
      const answer = await answerOf(client().GET('/requests/{request_id}', { params }));
      const { timeline, ...fields } = answer;
      const { attempts, ...times } = timeline;
      show(answer, () => `${recordOf(fields)}\n\n${recordOf(times)}\n\n${tableOf(attempts)}`);
    });

  program
    .command('doctor')
    .description('stores, processes, queues, providers, settlement and clocks; exit code 1 where something is wrong')
    .action(async () => {
      const findings = await examine(client(), () =>
        fetch(`${optionsOf().url}/health/deep`, { headers: authorization() }),
      );
      show(findings, () => tableOf(findings));
      if (findings.some(({ state }) => state === 'bad')) process.exitCode = 1;
    });

  program
    .command('processes')
    .description('who runs, in which version')
    .action(async () => {
      const columns = 'kind version commit host pid uptime_seconds running draining';
      showList(await processesOf(client()), columns.split(' '));
    });

  const queues = program.command('queues').description('list, pause and resume queues');
  queues
    .command('list', { isDefault: true })
    .description('what waits, and how fast it is done')
    .action(async () => {
      const figures = 'waiting active delayed failed oldest_age_seconds drain_rate_per_second workers_wanted paused';
      showList(await queuesOf(client()), ['id', ...figures.split(' ')]);
    });
  const ofQueue = (queue: string) => ({ params: { path: { queue } } });
  queues
    .command('pause')
    .description('requests are accepted, and wait')
    .argument('<queue>', 'its id')
    .action((queue: string) => one(client().POST('/queues/{queue}/pause', ofQueue(queue))));
  queues
    .command('resume')
    .argument('<queue>', 'its id')
    .action((queue: string) => one(client().POST('/queues/{queue}/resume', ofQueue(queue))));

  program
    .command('replay')
    .description('run failed requests again; without --run it only says which')
    .addOption(new Option('--hours <n>', 'that failed in so many hours').argParser(wholeNumber).default(24))
    .option('--tenant <tenant>')
    .option('--run')
    .action(async ({ hours, tenant, run }: { hours: number; tenant?: string; run?: true }) => {
      const start_time = Math.floor(Date.now() / 1_000) - hours * 3_600;
      const body = { start_time, dry_run: run !== true, ...(tenant === undefined ? {} : { tenant_id: tenant }) };
      const replay = (page: object) => answerOf(client().POST('/requests/replay', { body: { ...body, ...page } }));
      let answer = await replay({});
      while (run === true && answer.next_page !== null)
        answer = withPage(answer, await replay({ page: answer.next_page }));
      const { matched, replayed, skipped, dry_run, data } = answer;
      const summary = recordOf({ matched, replayed, skipped, dry_run });
      show(
        answer,
        () => `${summary}\n\n${tableOf(data, ['id', 'tenant_id', 'kind', 'error_code', 'outcome', 'reason'])}`,
      );
    });

  return program;
}

/** The sentence for a failure that is the caller's or the network's; undefined: it is ours. */
function sentenceOf(error: unknown, url: string): string | undefined {
  if (error instanceof Refused) return error.message;
  if (error instanceof TypeError) return `The administration is not reached at ${url}: set PARLEY_ADMIN_URL or --url.`;
  return undefined;
}

async function main(): Promise<void> {
  const program = createParley({ env: process.env, print: console.log }).version(BUILD.version);
  try {
    await program.parseAsync();
  } catch (error) {
    const sentence = sentenceOf(error, program.opts<{ url: string }>().url);
    if (sentence === undefined) throw error;
    console.error(sentence);
    process.exitCode = 1;
  }
}

if (realpathSync(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) await main();
