import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

import type { Environment } from '../embedded/find-program.ts';

/** An API key of the demo tenant; its value is shown by the service only once. */
export interface DemoKey {
  id: string;
  value: string;
}

/** A provider as `npm start` last set it. */
interface PutProvider {
  fingerprint: string;
  updatedAt: number;
}

/** A tier as `npm start` last set it. */
interface PutTier {
  fingerprint: string;
  version: number;
}

/** What an `npm start` remembers for the next one, in `DATA_DIR/start.json`. */
export interface StartState {
  adminToken: string;
  credentialsKey: string;
  /** The password of the embedded Redis. */
  redisPassword: string;
  tenantId?: string;
  /** A week of traffic was played for this tenant. */
  hasWeek?: boolean;
  liveKey?: DemoKey;
  testKey?: DemoKey;
  /** The servers of the last start, so that later commands can find them. */
  stores?: { REDIS_URL: string; MONGODB_URI: string };
  providers: Record<string, PutProvider>;
  tiers: Record<string, PutTier>;
}

/** Reads the file, or creates new secrets if there is none. */
export async function loadState(file: string): Promise<StartState> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return newState();
  try {
    const state: unknown = JSON.parse(text);
    // Only this program writes the file, and everything else follows from the secrets.
    if (hasSecrets(state)) return { ...newState(), ...state };
  } catch {
    // Reported below, like a file of the wrong shape.
  }
  throw new Error(`${file} cannot be read: delete it, and a new demo tenant with new keys is made.`);
}

/** Replaces the file atomically; only its owner may read it. */
export async function saveState(file: string, state: StartState): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const draft = `${file}.new`;
  await writeFile(draft, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o600 });
  await rename(draft, file);
}

/**
 * Values that were stored before `CREDENTIALS_KEY` was set, perhaps for Docker Compose in the same `.env`, stay
 * readable.
 */
export function credentialsSettings(env: Environment, { credentialsKey }: StartState): Environment {
  const { CREDENTIALS_KEY: given, CREDENTIALS_KEYS: others } = env;
  if (given === undefined || given === credentialsKey) return { CREDENTIALS_KEY: credentialsKey };
  return { CREDENTIALS_KEYS: others === undefined ? credentialsKey : `${others},${credentialsKey}` };
}

function newState(): StartState {
  return {
    adminToken: randomBytes(24).toString('hex'),
    credentialsKey: randomBytes(32).toString('base64'),
    redisPassword: randomBytes(24).toString('hex'),
    providers: {},
    tiers: {},
  };
}

function hasSecrets(state: unknown): state is Partial<StartState> {
  return (
    typeof state === 'object' &&
    state !== null &&
    'adminToken' in state &&
    typeof state.adminToken === 'string' &&
    'credentialsKey' in state &&
    typeof state.credentialsKey === 'string'
  );
}
