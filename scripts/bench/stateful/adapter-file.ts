import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

import Joi from 'joi';

import type { Component, Feature, HttpAsk, Missing, StatefulSystem, Statement } from './system.ts';
import { openAiAsk } from './systems/openai-target.ts';

/** What docs/benchmarks/stateful.md describes for systems that are already running. Names are those of the file. */
interface AdapterFile {
  name: string;
  version: string;
  urls: string[];
  notes: string[];
  /** A key for calls that need no account of their own. */
  key: string;
  path: string;
  stream_path: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  request_id_header: string;
  resume?: { path: string; headers: Record<string, string> };
  has_request_limits: boolean;
  has_balance: boolean;
  book_seconds: number;
  hooks: {
    open_account?: string;
    statement?: string;
    submit_batch?: string;
    cancel_batch?: string;
    kill: Record<string, string>;
    start: Record<string, string>;
  };
  not_tried: Partial<Record<string, string>>;
}

const texts = () => Joi.object().pattern(Joi.string(), Joi.string()).default({});
const command = () => Joi.string().min(1);

const schema = Joi.object<AdapterFile, true>({
  name: Joi.string().required(),
  version: Joi.string().default('unknown'),
  urls: Joi.array()
    .items(Joi.string().uri({ scheme: ['http', 'https'] }))
    .min(1)
    .max(2)
    .required(),
  notes: Joi.array().items(Joi.string()).default([]),
  key: Joi.string().allow('').default(''),
  path: Joi.string().default('/chat/completions'),
  stream_path: Joi.string().default(Joi.ref('path')),
  headers: texts(),
  body: Joi.object().default({}),
  request_id_header: Joi.string().lowercase().default('x-request-id'),
  resume: Joi.object({ path: Joi.string().required(), headers: texts() }),
  has_request_limits: Joi.boolean().default(false),
  has_balance: Joi.boolean().default(false),
  book_seconds: Joi.number().min(0).max(600).default(15),
  hooks: Joi.object({
    open_account: command(),
    statement: command(),
    submit_batch: command(),
    cancel_batch: command(),
    kill: texts(),
    start: texts(),
  }).default({ kill: {}, start: {} }),
  not_tried: texts(),
})
  .required()
  .label('The adapter')
  .messages({ 'object.unknown': '{#label} is not a field of an adapter' });

const accountSchema = Joi.object<{ key: string; id: string }, true>({
  key: Joi.string().required(),
  id: Joi.string().default(Joi.ref('key')),
}).required();

const statementSchema = Joi.object<Omit<Statement, 'bookings'> & { bookings?: string[] }, true>({
  granted: Joi.number().required(),
  charged: Joi.number().required(),
  balance: Joi.number().required(),
  bookings: Joi.array().items(Joi.string()),
}).required();

/** For each feature, checks the fields by which an adapter says that it has the feature. */
function missingOf(file: AdapterFile): StatefulSystem['missing'] {
  const { hooks } = file;
  const has: Record<Feature, boolean> = {
    requestLimits: file.has_request_limits && hooks.open_account !== undefined,
    accounts: file.has_balance && hooks.open_account !== undefined && hooks.statement !== undefined,
    resume: file.resume !== undefined,
    batches: hooks.submit_batch !== undefined,
    kill: Object.keys(hooks.kill).length > 0,
  };
  const missing = Object.entries(has).flatMap(([feature, isThere]): [string, Missing][] => {
    const reason = file.not_tried[feature];
    if (reason !== undefined) return [[feature, { kind: 'not tried', why: reason }]];
    return isThere ? [] : [[feature, { kind: 'not supported', why: 'the adapter names none' }]];
  });
  return Object.fromEntries(missing);
}

/** Replaces each `{name}` with its value. */
function fill(template: string, values: Record<string, string>): string {
  return template.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

function fillAll(templates: Record<string, string>, values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(templates).map(([name, template]) => [name, fill(template, values)]));
}

/** Rejects with an error of one sentence. */
export async function readAdapter(path: string): Promise<StatefulSystem> {
  const result = schema.validate(JSON.parse(await readFile(path, 'utf8')), { errors: { wrap: { label: false } } });
  if (result.error !== undefined) throw new Error(`${path}: ${result.error.message}.`);
  return systemOf(result.value);
}

function systemOf(file: AdapterFile): StatefulSystem {
  const { hooks, resume } = file;
  return {
    name: file.name,
    version: file.version,
    notes: file.notes,
    missing: missingOf(file),
    urls: file.urls.map((url) => url.replace(/\/+$/, '')),
    requestIdHeader: file.request_id_header,
    bookSeconds: file.book_seconds,
    components: componentsOf(file),
    ask: ({ key }, ask): HttpAsk => ({
      path: ask.stream ? file.stream_path : file.path,
      headers: { 'Content-Type': 'application/json', ...fillAll(file.headers, { key }) },
      body: openAiAsk(ask, 'sim', file.body),
    }),
    async openAccount({ requestsPerMinute, tokens }) {
      if (hooks.open_account === undefined) return { key: file.key, id: file.key };
      const env = { REQUESTS_PER_MINUTE: String(requestsPerMinute ?? ''), TOKENS: String(tokens ?? '') };
      return checked(accountSchema, await answerOf({ command: hooks.open_account, env }), 'open_account');
    },
    ...(hooks.statement === undefined ? {} : { statement: statementBy(hooks.statement) }),
    ...(resume === undefined
      ? {}
      : {
          resume: ({ key }, requestId, lastEventId) => {
            const values = { key, request_id: requestId, last_event_id: lastEventId };
            return {
              path: fill(resume.path, values),
              headers: fillAll({ ...file.headers, ...resume.headers }, values),
            };
          },
        }),
    ...(hooks.submit_batch === undefined ? {} : { submitBatch: batchBy(hooks.submit_batch, hooks.cancel_batch) }),
  };
}

function componentsOf({ hooks: { kill, start } }: AdapterFile): Record<string, Component> {
  const by = (command: string | undefined) => async () => {
    if (command !== undefined) await runHook({ command, env: {} });
  };
  return Object.fromEntries(
    Object.entries(kill).map(([name, command]) => [name, { kill: by(command), start: by(start[name]) }]),
  );
}

function statementBy(hook: string): NonNullable<StatefulSystem['statement']> {
  return async ({ key, id }) => {
    const answer = await answerOf({ command: hook, env: { ACCOUNT_KEY: key, ACCOUNT_ID: id } });
    return { bookings: undefined, ...checked(statementSchema, answer, 'statement') };
  };
}

function batchBy(submit: string, cancel: string | undefined): NonNullable<StatefulSystem['submitBatch']> {
  return async ({ key, id }, lines) => {
    const env = { ACCOUNT_KEY: key, ACCOUNT_ID: id };
    const batch = (await runHook({ command: submit, env: { ...env, LINES: String(lines) } })).trim();
    return {
      async cancel() {
        if (cancel !== undefined) await runHook({ command: cancel, env: { ...env, BATCH: batch } });
      },
    };
  };
}

/** A command of an adapter file; its environment holds its arguments. */
interface Hook {
  command: string;
  env: Record<string, string>;
}

const HOOK_TIMEOUT_MS = 5 * 60_000;

/** Runs a hook in a shell and returns its output. Rejects with the last line of its errors. */
async function runHook({ command, env }: Hook): Promise<string> {
  const options = { env: { ...process.env, ...env }, timeout: HOOK_TIMEOUT_MS };
  try {
    return (await promisify(execFile)('/bin/sh', ['-c', command], options)).stdout;
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`The hook "${command}" failed: ${stderr.split('\n').at(-1) ?? ''}`, { cause: error });
  }
}

async function answerOf(hook: Hook): Promise<unknown> {
  return JSON.parse(await runHook(hook));
}

function checked<T>(expected: Joi.ObjectSchema<T>, answer: unknown, hook: string): T {
  const result = expected.validate(answer);
  if (result.error !== undefined) throw new Error(`The hook ${hook} printed something else: ${result.error.message}.`);
  return result.value;
}
