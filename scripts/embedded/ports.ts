import { createServer } from 'node:net';

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

/** A port of the loopback address that nobody listens on at the moment. */
export async function freePort(): Promise<number> {
  const result = await listenOnce(0, '127.0.0.1');
  if ('code' in result) throw new Error(`No free port on 127.0.0.1 (${result.code}).`);
  return result.port;
}

/** One sentence for each port that cannot be used, each saying what to do. */
export async function findPortFaults(wanted: readonly WantedPort[]): Promise<string[]> {
  const faults: string[] = [];
  const seen = new Map<number, string>();
  for (const { setting, port, host } of wanted) {
    const other = seen.get(port);
    seen.set(port, setting);
    if (other !== undefined) {
      faults.push(`${other} and ${setting} are both ${port}: set one of them to another port.`);
      continue;
    }
    const result = await listenOnce(port, host);
    if ('code' in result) faults.push(describeFault(setting, port, host, result.code));
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
