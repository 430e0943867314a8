import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createChatCompletions } from './chat-completions.ts';
import { createModelSettings } from './model-settings.ts';
import { createRoutes } from './routes.ts';
import type { SettingsInput } from './settings.ts';
import { createStats } from './stats.ts';

/** Longer than clients keep idle connections, so that the client closes them first. */
const KEEP_ALIVE_MS = 75_000;
/** When a benchmark starts, thousands of clients connect at once. */
const BACKLOG = 4_096;

export type SimulatedProvider = ReturnType<typeof createSimulatedProvider>;

/**
 * The simulated model provider: an HTTP server of OpenAI's and Anthropic's protocol with deterministic answers, failures
 * on demand (settings.ts) and its own books (stats.ts). Any key is accepted. Throws SettingsError for bad defaults.
 */
export function createSimulatedProvider({ defaults = {} }: { defaults?: SettingsInput } = {}) {
  const models = createModelSettings(defaults);
  const stats = createStats();
  const chat = createChatCompletions(models, stats);
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, createRoutes({ models, stats, chat }));

  return {
    /** Port 0 takes a free one. Rejects with the system's error (`EADDRINUSE`). */
    async listen(port = 0, host = '127.0.0.1'): Promise<{ port: number; url: string }> {
      await once(server.listen({ port, host, backlog: BACKLOG }), 'listening');
      // A TCP server that listens has such an address.
      const { port: taken } = server.address() as AddressInfo;
      return { port: taken, url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}` };
    },
    /** Closes at once, including open streams. Safe to repeat. */
    close: () =>
      new Promise<void>((resolve) => {
        // An error here only means that the server was not open.
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
    /** Does what `GET /stats` does. */
    stats: () => stats.report({ detail: true }),
    /** Does what `GET /stats/requests/{id}` does. */
    request: (requestId: string) => stats.request(requestId),
    /** Does what `POST /stats/reset` does. */
    reset(): void {
      stats.reset();
      chat.reset();
    },
    /** Does what `POST /settings` does. Throws SettingsError. */
    change: (settings: SettingsInput): void => {
      models.change(settings);
    },
    /** Does what `DELETE /settings` does. */
    restore: models.restore,
    /** Does what `GET /settings` does. */
    settings: models.current,
  };
}
