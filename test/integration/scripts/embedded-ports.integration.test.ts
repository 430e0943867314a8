import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { findPortFaults, freePort, onFreePort } from '../../../scripts/embedded/ports.ts';
import { ROOT } from '../../../scripts/harness/program.ts';

const RANGE = '/proc/sys/net/ipv4/ip_local_port_range';
const HOST = '127.0.0.1';
let occupant: Server;
let taken: number;

beforeAll(async () => {
  occupant = createServer().listen(0, HOST);
  await once(occupant, 'listening');
  // A server that listens on a port has an address of this kind.
  taken = (occupant.address() as AddressInfo).port;
});
afterAll(() => {
  occupant.close();
});

describe('the check of ports', () => {
  it('finds nothing wrong with free ports, and leaves them free', async () => {
    const wanted = [{ setting: 'PORT', port: await freePort(), host: HOST }];
    expect(await findPortFaults(wanted)).toEqual([]);
    expect(await findPortFaults(wanted)).toEqual([]);
  });

  it('says in one sentence which setting names a port in use', async () => {
    const faults = await findPortFaults([
      { setting: 'PORT', port: taken, host: HOST },
      { setting: 'ADMIN_PORT', port: await freePort(), host: HOST },
    ]);
    const sentence = `Port ${taken} (PORT) is in use: stop the program that listens there or set PORT to another port.`;
    expect(faults).toEqual([{ sentence, isInUse: true }]);
  });

  it('the check of ports finds two settings with the same port', async () => {
    const port = await freePort();
    const faults = await findPortFaults([
      { setting: 'PORT', port, host: HOST },
      { setting: 'ADMIN_PORT', port, host: HOST },
    ]);
    const sentence = `PORT and ADMIN_PORT are both ${port}: set one of them to another port.`;
    expect(faults).toEqual([{ sentence, isInUse: false }]);
  });

  it('names HOST when the address is not one of this machine', async () => {
    const [fault] = await findPortFaults([{ setting: 'PORT', port: await freePort(), host: '192.0.2.1' }]);
    expect(fault?.sentence).toContain('set HOST to an address of this machine');
  });
});

/** Rejects where some process has the UDP port of the number. */
const bind = (port: number) => {
  const socket = createSocket('udp4').bind(port, HOST);
  return once(socket, 'listening').finally(() => socket.close());
};

describe('a free port', () => {
  it('is given to one run only, however many look for one side by side', async () => {
    const script = `
      import { freePort } from ${JSON.stringify(join(ROOT, 'scripts/embedded/ports.ts'))};
      console.log(...(await Array.fromAsync({ length: 20 }, freePort)));
      await new Promise((resolve) => process.stdin.once('data', resolve));`;
    const runs = Array.from({ length: 3 }, () =>
      spawn(process.execPath, ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script]),
    );
    const lines = await Promise.all(runs.map((run) => once(run.stdout, 'data')));
    const ports = lines.flatMap(([line]) => String(line).trim().split(' '));
    expect(ports).toHaveLength(60);
    expect(new Set(ports).size).toBe(60);

    await expect(bind(Number(ports[0]))).rejects.toThrow('EADDRINUSE');
    // Killed runs give nothing back themselves.
    const ends = runs.map((run) => once(run, 'exit'));
    for (const run of runs) run.kill('SIGKILL');
    await Promise.all(ends);
    await bind(Number(ports[0]));
  });

  it('lies below the ports of outgoing connections, which would take it', async () => {
    const range = existsSync(RANGE) ? readFileSync(RANGE, 'utf8') : '32768';
    const port = await freePort();
    expect(port).toBeLessThan(Number(range.split('\t')[0]));
  });
});

describe('a start on a free port', () => {
  it('is tried on another port when the first was taken in between', async () => {
    const tried: number[] = [];
    const [port, result] = await onFreePort(undefined, (candidate) => {
      tried.push(candidate);
      if (tried.length === 1) throw new Error('It did not start: OSError: [Errno 98] Address already in use');
      return Promise.resolve('up');
    });
    expect(result).toBe('up');
    expect(tried).toHaveLength(2);
    expect(port).toBe(tried[1]);
  });

  it('fails at once on a port that the caller has chosen, and for any other reason', async () => {
    const inUse = () => Promise.reject(new Error('Address already in use'));
    await expect(onFreePort(5, inUse)).rejects.toThrow('Address already in use');
    let calls = 0;
    const broken = () => {
      calls += 1;
      return Promise.reject(new Error('no such file'));
    };
    await expect(onFreePort(undefined, broken)).rejects.toThrow('no such file');
    expect(calls).toBe(1);
  });
});
