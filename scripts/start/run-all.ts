import { chmod, mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import type { Environment } from '../embedded/find-program.ts';
import { acquireLock, LockHeldError } from '../embedded/lock-file.ts';
import { findPortFaults } from '../embedded/ports.ts';
import { prepareLocalModel } from '../embedded/local-model.ts';
import type { Log } from '../embedded/run-step.ts';
import { createAdminApi } from '../harness/admin-api.ts';
import { endOnSignals, explain } from '../harness/run-supervised.ts';
import { renderBanner } from './banner.ts';
import { demoProviders, ensureRoutes } from './demo-routes.ts';
import type { DemoProvider } from './demo-routes.ts';
import { ensureTenant } from './demo-tenant.ts';
import type { DemoTenant } from './demo-tenant.ts';
import { playWeekInto, WITHOUT_PAST } from './demo-week.ts';
import { findModel, modelNamesAt, OLLAMA_URL } from './model-server.ts';
import type { ServedModel } from './model-server.ts';
import { startServiceProcesses, startSimulatedProvider } from './processes.ts';
import { readSettings, wantedPorts } from './settings.ts';
import type { StartSettings } from './settings.ts';
import { credentialsSettings, loadState, saveState } from './state.ts';
import type { StartState } from './state.ts';
import { startStores } from './stores.ts';
import { createSupervisor } from '../harness/supervisor.ts';
import type { Supervisor } from '../harness/supervisor.ts';

/** When a stop takes longer than this, the user is told what it waits for. */
const STOP_NOTICE_MS = 3_000;
/** A guard waits 10 s for the end of what it ends. */
const ORPHANS_MS = 12_000;
const PORTS_LOOK_MS = 200;
/** Most machines have none, and an address of this machine answers at once. */
const OLLAMA_TIMEOUT_MS = 500;

/** Everything that `npm start` does after its first line; resolves with the exit code when all has ended. */
export async function runAll(given: Environment, args: string[], print: Log): Promise<number> {
  const log: Log = (line) => {
    print(`start | ${line}`);
  };
  const supervisor = createSupervisor(log);
  listenForEnd(supervisor, print);
  let exitCode: number;
  try {
    const settings = readSettings(given, args);
    await bringUp(supervisor, settings, log, print);
    await supervisor.ended;
    exitCode = await explain(supervisor, undefined);
  } catch (error) {
    exitCode = await explain(supervisor, error);
  }
  await closeWithNotice(supervisor, log);
  return exitCode;
}

/** What is used comes before what uses it, and closing goes the other way. */
async function bringUp(supervisor: Supervisor, settings: StartSettings, log: Log, print: Log): Promise<void> {
  const { dataDir } = settings;
  const lock = await usable(dataDir, async () => {
    await closeToOthers(dataDir, log);
    return lockDataDir(dataDir);
  });
  supervisor.defer('the lock', lock.release);
  await assertPorts(settings, { waits: lock.isTakenOver, signal: supervisor.signal, log });

  const stateFile = join(dataDir, 'start.json');
  const state = await usable(dataDir, async () => {
    const loaded = await loadState(stateFile);
    await saveState(stateFile, loaded);
    return loaded;
  });
  const served = await openModel(supervisor, settings, log);
  const stores = await startStores(supervisor, settings, state, log);
  await saveState(stateFile, Object.assign(state, { stores }));
  const adminToken = settings.env['ADMIN_TOKEN'] ?? state.adminToken;
  const env: Environment = {
    ...settings.env,
    ...credentialsSettings(settings.env, state),
    ...stores,
    ADMIN_TOKEN: adminToken,
    DATA_DIR: dataDir,
  };
  if (settings.answers.from === 'simulated')
    await startSimulatedProvider(supervisor, env, settings.answers.port, print);
  await startServiceProcesses(supervisor, settings, env, print);
  const providers = demoProviders(settings, served);
  const tenant = await prepareDemo(settings, providers, state, stateFile, adminToken, log);
  const ollama = settings.answers.from === 'simulated' ? await modelNamesAt(OLLAMA_URL, OLLAMA_TIMEOUT_MS) : [];
  print(renderBanner({ settings, tenant, adminToken, providers, ollama }));
}

/** The model of `PROVIDER_URL` or of `--local`, which is started first; undefined where neither is wanted. */
async function openModel(
  supervisor: Supervisor,
  { answers, dataDir, env }: StartSettings,
  log: Log,
): Promise<ServedModel | undefined> {
  if (answers.from === 'local') {
    const options = { cacheDir: join(dataDir, 'cache'), log, env, signal: supervisor.signal };
    const { url, ...server } = await prepareLocalModel(answers.port, options);
    await supervisor.start('provider', server);
    return findModel({ url, model: undefined, key: undefined });
  }
  return answers.from === 'server' ? findModel(answers.server) : undefined;
}

/**
 * Rejects where a port cannot be used. `waits`: the start before was killed, and what it had started may still be ending.
 * Guards end that (scripts/embedded/server-process.ts).
 */
async function assertPorts(
  settings: StartSettings,
  { waits, signal, log }: { waits: boolean; signal: AbortSignal; log: Log },
): Promise<void> {
  const deadline = performance.now() + ORPHANS_MS;
  for (let isFirst = true; ; isFirst = false) {
    const faults = await findPortFaults(wantedPorts(settings));
    if (faults.length === 0) return;
    if (!waits || !faults.every(({ isInUse }) => isInUse) || performance.now() > deadline)
      throw new Error(faults.map(({ sentence }) => sentence).join('\n'));
    if (isFirst)
      log(`waiting up to ${ORPHANS_MS / 1000} s for ports that an npm start which was killed may still have`);
    await pause(PORTS_LOOK_MS, undefined, { signal });
  }
}

/** What the file system refuses is told with what to change. */
async function usable<T>(dataDir: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    // SQLite, which keeps the lock, has codes of its own.
    if (!(error instanceof Error && ('syscall' in error || 'errcode' in error))) throw error;
    throw new Error(
      `${dataDir} cannot be used (${error.message}): make room in it, or set DATA_DIR to a folder that belongs to you.`,
      { cause: error },
    );
  }
}

/**
 * Makes a folder and those that are missing above it. The `recursive` of Node.js tries without end where a folder is there
 * and says ENOENT to what is made in it, as /proc does.
 */
async function makeFolder(folder: string, isAboveThere = false): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST' && (await stat(folder)).isDirectory()) return;
    if (code !== 'ENOENT' || isAboveThere) throw error;
    await makeFolder(dirname(folder));
    await makeFolder(folder, true);
  }
}

/** Conversations, keys and the demo tenant's secrets are there: no other user of the machine may look in. */
async function closeToOthers(dataDir: string, log: Log): Promise<void> {
  process.umask(0o077);
  await makeFolder(dataDir);
  await chmod(dataDir, 0o700).catch((error: unknown) => {
    log(`Other users may be able to read ${dataDir} (${error instanceof Error ? error.message : String(error)})`);
  });
}

function lockDataDir(dataDir: string) {
  try {
    return acquireLock(join(dataDir, 'start.lock'));
  } catch (error) {
    if (!(error instanceof LockHeldError)) throw error;
    throw new Error(
      `Another npm start (process ${error.pid}) uses ${dataDir}: stop it, or set DATA_DIR to another folder.`,
      { cause: error },
    );
  }
}

/** Makes or finds the demo tenant and remembers it even when a later step fails. */
async function prepareDemo(
  settings: StartSettings,
  providers: readonly DemoProvider[],
  state: StartState,
  stateFile: string,
  adminToken: string,
  log: Log,
): Promise<DemoTenant> {
  const admin = createAdminApi(settings.adminUrl, adminToken);
  try {
    await ensureRoutes(admin, providers, state, log);
    const { isDemo, baseUrl, config } = settings;
    const { keyPrefix } = config.process;
    if (!isDemo || state.hasWeek === true || state.stores === undefined)
      return await ensureTenant(admin, keyPrefix, state);
    log('Playing a week of traffic: some seconds');
    // The past comes before the first entry of a ledger, so an earlier demo tenant stays as it is.
    delete state.tenantId;
    const tenant = await ensureTenant(admin, keyPrefix, state, WITHOUT_PAST);
    await playWeekInto(state.stores, { admin, baseUrl, tenant });
    state.hasWeek = true;
    return tenant;
  } finally {
    await saveState(stateFile, state);
  }
}

function listenForEnd(supervisor: Supervisor, print: Log): void {
  const onFirst = () => {
    print('\nStopping ...');
    return { exitCode: 0 };
  };
  endOnSignals(supervisor, onFirst, () => {
    print('\nEnding everything at once.');
  });
  // scripts/launch.mjs was killed, or whoever reads the log has gone.
  const onLoss = () => {
    supervisor.requestEnd({ exitCode: 1 });
  };
  process.on('disconnect', onLoss);
  process.stdout.on('error', onLoss);
}

async function closeWithNotice(supervisor: Supervisor, log: Log): Promise<void> {
  const notice = setTimeout(() => {
    log('waiting for requests that still run; Ctrl-C ends everything at once');
  }, STOP_NOTICE_MS);
  await supervisor.close();
  clearTimeout(notice);
}
