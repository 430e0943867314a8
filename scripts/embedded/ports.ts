import { accessSync, constants, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A setting that names a port, as the user knows it. */
export interface WantedPort {
  setting: string;
  port: number;
  host: string;
}

function listenOnce(port: number, host: string): Promise<{ port: number } | { code: string }> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve({ code: error.code ?? error.message });
    });
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      const bound = typeof address === 'object' && address !== null ? address.port : port;
      server.close(() => {
        resolve({ port: bound });
      });
    });
  });
}

/** Below what systems give to outgoing connections and to whoever asks for port 0. */
const FIRST_PORT = 15_000;
const LAST_PORT = 31_999;
/** One file for each reserved port, with the process that reserved it. Every run of this user looks there. */
const RESERVED = join(tmpdir(), `parley-ports-${process.getuid?.() ?? 'all'}`);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** False where nothing can be written: ports are as free then as they look. */
function canReserve(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Gives back what processes had reserved that have ended. */
function forgetEnded(folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = join(folder, name);
    try {
      const pid = Number(readFileSync(file, 'utf8'));
      // An empty file is being written.
      if (pid > 0 && !isAlive(pid)) rmSync(file, { force: true });
    } catch {
      // Another run has given it back.
    }
  }
}

function reserve(port: number, folder: string): boolean {
  try {
    writeFileSync(join(folder, String(port)), String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * A port of the loopback address that nobody listens on, and that no other call gets before this process has ended: a
 * server that is stopped and started again finds it free.
 */
export async function freePort(folder = RESERVED): Promise<number> {
  const isShared = canReserve(folder);
  if (isShared) forgetEnded(folder);
  const count = LAST_PORT - FIRST_PORT + 1;
  const start = Math.floor(Math.random() * count);
  for (let tries = 0; tries < count; tries += 1) {
    const port = FIRST_PORT + ((start + tries) % count);
    if ((!isShared || reserve(port, folder)) && 'port' in (await listenOnce(port, '127.0.0.1'))) return port;
  }
  throw new Error(`No port from ${FIRST_PORT} to ${LAST_PORT} is free; ${folder} has what is reserved.`);
}

export interface PortFault {
  sentence: string;
  /** Something listens there, and may end. */
  isInUse: boolean;
}

/** One sentence for each port that cannot be used, each saying what to do. */
export async function findPortFaults(wanted: readonly WantedPort[]): Promise<PortFault[]> {
  const faults: PortFault[] = [];
  const seen = new Map<number, string>();
  for (const { setting, port, host } of wanted) {
    const other = seen.get(port);
    seen.set(port, setting);
    if (other !== undefined) {
      const sentence = `${other} and ${setting} are both ${port}: set one of them to another port.`;
      faults.push({ sentence, isInUse: false });
      continue;
    }
    const result = await listenOnce(port, host);
    if (!('code' in result)) continue;
    faults.push({ sentence: describeFault(setting, port, host, result.code), isInUse: result.code === 'EADDRINUSE' });
  }
  return faults;
}

function describeFault(setting: string, port: number, host: string, code: string): string {
  if (code === 'EADDRINUSE') {
    return `Port ${port} (${setting}) is in use: stop the program that listens there or set ${setting} to another port.`;
  }
  if (code === 'EACCES') {
    return `Port ${port} (${setting}) may not be opened by this user: set ${setting} to a port above 1023.`;
  }
  return `${setting} cannot listen on ${host}:${port} (${code}): set HOST to an address of this machine and ${setting} to a free port.`;
}

const PORT_TRIES = 3;

/** Starts something on `wanted`, or on free ports until one is not taken in between. Returns the port with the result. */
export async function onFreePort<T>(
  wanted: number | undefined,
  start: (port: number) => Promise<T>,
): Promise<[number, T]> {
  for (let attempt = 1; ; attempt += 1) {
    const port = wanted ?? (await freePort());
    try {
      return [port, await start(port)];
    } catch (error) {
      const taken = error instanceof Error && /address already in use/i.test(error.message);
      if (!taken || wanted !== undefined || attempt === PORT_TRIES) throw error;
    }
  }
}
