import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** A setting that names a port, as the user knows it. */
export interface WantedPort {
  setting: string;
  port: number;
  host: string;
}

/** The code of the error with which listening fails; undefined: the port is free. */
function refusalOf(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code ?? error.message);
    });
    server.listen({ port, host, exclusive: true }, () => {
      server.close(() => {
        resolve(undefined);
      });
    });
  });
}

/** Below what systems give to outgoing connections and to whoever asks for port 0. */
const FIRST_PORT = 15_000;
const LAST_PORT = 31_999;

/**
 * Holds the UDP port of the same number while this process runs: a server that listens with TCP is not in its way, and the
 * system gives it back however the process ends.
 */
function reserve(port: number): Promise<boolean> {
  const socket = createSocket('udp4').unref();
  return new Promise((resolve) => {
    socket.once('error', () => {
      socket.close();
      resolve(false);
    });
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
      resolve(true);
    });
  });
}

/**
 * A port of the loopback address that nobody listens on, and that no other call gets before this process has ended: a
 * server that is stopped and started again finds it free.
 */
export async function freePort(): Promise<number> {
  const count = LAST_PORT - FIRST_PORT + 1;
  const start = Math.floor(Math.random() * count);
  for (let tries = 0; tries < count; tries += 1) {
    const port = FIRST_PORT + ((start + tries) % count);
    if ((await reserve(port)) && (await refusalOf(port, '127.0.0.1')) === undefined) return port;
  }
  throw new Error(`No port from ${FIRST_PORT} to ${LAST_PORT} is free.`);
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
    const code = await refusalOf(port, host);
    if (code === undefined) continue;
    faults.push({ sentence: describeFault(setting, port, host, code), isInUse: code === 'EADDRINUSE' });
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
