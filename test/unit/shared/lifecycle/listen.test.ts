import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, expect, it } from '@jest/globals';

import { listen } from '../../../../shared/lifecycle/run-process.ts';

const servers: Server[] = [];
function newServer(): Server {
  const server = createServer();
  servers.push(server);
  return server;
}
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

// The address is the fake's own word; nothing of it leaves the loopback interface.
const portOf = (server: Server) => (server.address() as AddressInfo).port;

it('says which setting names a port that is in use', async () => {
  const first = newServer();
  await listen(first, 0, '127.0.0.1', 'PORT');
  const port = portOf(first);

  await expect(listen(newServer(), port, '127.0.0.1', 'ADMIN_PORT')).rejects.toThrow(
    `Port ${port} is in use; stop what uses it or set ADMIN_PORT to another port.`,
  );
});

it('says which settings name an address that is not of this machine', async () => {
  await expect(listen(newServer(), 0, '192.0.2.1', 'PORT')).rejects.toThrow(
    'Port 0 cannot be opened on 192.0.2.1; check HOST and PORT.',
  );
});
