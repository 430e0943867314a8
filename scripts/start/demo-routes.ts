import { createHash } from 'node:crypto';

import type { Log } from '../embedded/run-step.ts';
import type { AdminApi } from '../harness/admin-api.ts';
import { RATES } from '../harness/start-processes.ts';
import type { ServedModel } from './model-server.ts';
import type { AnswerSettings, StartSettings } from './settings.ts';
import type { StartState } from './state.ts';

type DemoTier = keyof typeof RATES;

const CONTEXT_WINDOW = 128_000;
/** Names that clients and their examples have built in, so that these run unchanged. */
const PUBLISHED = { 'gpt-4o-mini': 'mobius', 'text-embedding-3-small': 'embedding' } as const;
/** About a second of text, which says that it is simulated and shows what the request held. */
export const SIMULATED_MODEL = 'sim?first_token_ms=150&chunk_ms=40&chunks=24&show=1';
/** A model on a small machine, which may have to be loaded first, takes longer to begin than a provider's. */
const OWN_FIRST_TOKEN_TIMEOUT_MS = 120_000;

export interface DemoProvider {
  name: string;
  body: { kind: string; base_url: string; api_key?: string; first_token_timeout_ms?: number };
  /** A server of one's own may have no embeddings, and a call that it refuses would count against it in chats, too. */
  models: Partial<Record<DemoTier, string>>;
  contextWindow: number;
  /** Absent: what servers of its kind can do. */
  capabilities?: readonly string[];
}

/** The providers of the demo tiers, in the order in which they are tried. `served`: the model, where it is not simulated. */
export function demoProviders({ answers }: StartSettings, served: ServedModel | undefined): DemoProvider[] {
  if (answers.from === 'keys') return providersOfKeys(answers);
  if (served !== undefined) return [providerOf(answers.from === 'local' ? 'local' : 'own-server', served)];
  if (answers.from === 'server') throw new Error('The model of PROVIDER_URL was not looked up.');
  return [
    {
      name: 'simulated',
      body: { kind: 'simulated', base_url: `http://127.0.0.1:${answers.port}/v1` },
      models: { mobius: SIMULATED_MODEL, oloid: SIMULATED_MODEL, embedding: SIMULATED_MODEL },
      contextWindow: CONTEXT_WINDOW,
    },
  ];
}

function providerOf(name: string, { url, key, model, contextWindow }: ServedModel): DemoProvider {
  const withKey = key === undefined ? {} : { api_key: key };
  return {
    name,
    body: { kind: 'openai', base_url: url, ...withKey, first_token_timeout_ms: OWN_FIRST_TOKEN_TIMEOUT_MS },
    models: { mobius: model, oloid: model },
    contextWindow,
    // The small model of this machine follows a schema by its server's grammar, and leaves tools and images unread.
    ...(name === 'local' ? { capabilities: ['json_schema'] } : {}),
  };
}

function providersOfKeys({ openaiKey, anthropicKey }: Extract<AnswerSettings, { from: 'keys' }>): DemoProvider[] {
  const providers: DemoProvider[] = [];
  if (openaiKey !== undefined) {
    providers.push({
      name: 'openai',
      body: { kind: 'openai', base_url: 'https://api.openai.com/v1', api_key: openaiKey },
      models: { mobius: 'gpt-4o-mini', oloid: 'gpt-4o', embedding: 'text-embedding-3-small' },
      contextWindow: CONTEXT_WINDOW,
    });
  }
  if (anthropicKey !== undefined) {
    providers.push({
      name: 'anthropic',
      body: { kind: 'anthropic', base_url: 'https://api.anthropic.com/v1', api_key: anthropicKey },
      models: { mobius: 'claude-haiku-4-5', oloid: 'claude-sonnet-4-5' },
      contextWindow: CONTEXT_WINDOW,
    });
  }
  return providers;
}

/**
 * Sets the providers and tiers of the demo, unless somebody else has. An administrator's later changes stay; whatever
 * is still as an earlier `npm start` left it follows the environment. Rejects where the only provider cannot be set.
 */
export async function ensureRoutes(
  admin: AdminApi,
  providers: readonly DemoProvider[],
  state: StartState,
  log: Log,
): Promise<void> {
  const wanted: DemoProvider[] = [];
  for (const provider of providers) {
    try {
      await ensureProvider(admin, provider, state);
      wanted.push(provider);
    } catch (error) {
      const sentence = `The provider ${provider.name} could not be set: ${error instanceof Error ? error.message : String(error)}`;
      if (providers.length === 1) throw new Error(sentence, { cause: error });
      log(sentence);
    }
  }
  if (wanted.length === 0) return;
  for (const tier of ['mobius', 'oloid', 'embedding'] as const) {
    const targets = wanted.flatMap(({ name, models, contextWindow, capabilities }, index) =>
      models[tier] === undefined
        ? []
        : [
            {
              provider: name,
              model: models[tier],
              weight: 1,
              priority: index + 1,
              ...(tier === 'embedding' ? {} : { context_window: contextWindow }),
              ...(capabilities === undefined ? {} : { capabilities }),
            },
          ],
    );
    if (targets.length > 0) await ensureTier(admin, tier, { rates: RATES[tier], targets }, state);
  }
}

/** Only beside a tier that is set for the first time: an administrator may withdraw a name. */
async function publishFor(admin: AdminApi, tier: DemoTier): Promise<void> {
  for (const [name, to] of Object.entries(PUBLISHED))
    if (to === tier) await admin.send('PUT', `/admin/v1/models/${name}`, { tier });
}

async function ensureProvider(admin: AdminApi, { name, body }: DemoProvider, state: StartState): Promise<void> {
  const path = `/admin/v1/providers/${name}`;
  const fingerprint = fingerprintOf(body);
  const current = await admin.find(path);
  const own = state.providers[name];
  if (current !== undefined && !(own?.updatedAt === current['updated_at'] && own?.fingerprint !== fingerprint)) return;
  const { updated_at: updatedAt } = await admin.send('PUT', path, body);
  state.providers[name] = { fingerprint, updatedAt: Number(updatedAt) };
}

async function ensureTier(admin: AdminApi, tier: DemoTier, content: object, state: StartState): Promise<void> {
  const path = `/admin/v1/tiers/${tier}`;
  const fingerprint = fingerprintOf(content);
  const current = Number((await admin.find(path))?.['version'] ?? 0);
  const own = state.tiers[tier];
  if (current !== 0 && !(own?.version === current && own.fingerprint !== fingerprint)) return;
  const { version } = await admin.send('PUT', path, content);
  state.tiers[tier] = { fingerprint, version: Number(version) };
  if (current === 0) await publishFor(admin, tier);
}

/** A digest, because the content may include a provider's key. */
function fingerprintOf(content: object): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}
