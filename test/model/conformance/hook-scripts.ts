import { hash } from 'node:crypto';

import type { RedisClient } from '../../../shared/infra/redis/connection.ts';

export interface ScriptHooks {
  /** The next call of a script is sent twice, as by a client that lost the first answer; the caller hears the second. */
  sendNextTwice(): void;
}

/** To be called before any script is defined on the client. `edit` may change the text of a script. */
export function hookScripts(client: RedisClient, edit: (lua: string) => string): ScriptHooks {
  const load = client.script.bind(client);
  const run = client.evalsha.bind(client);
  /** Name of a script's text → that of the changed one. */
  const names = new Map<string, string>();
  let isNextTwice = false;

  client.script = ((subcommand: 'LOAD', lua: string) => {
    names.set(hash('sha1', lua), hash('sha1', edit(lua)));
    return load(subcommand, edit(lua));
  }) as RedisClient['script'];

  client.evalsha = (async (sha: string, count: number, ...args: string[]) => {
    const name = names.get(sha);
    if (name === undefined) throw new Error('A script is called that was not loaded');
    if (isNextTwice) {
      isNextTwice = false;
      await run(name, count, ...args);
    }
    return run(name, count, ...args);
  }) as RedisClient['evalsha'];

  return {
    sendNextTwice() {
      isNextTwice = true;
    },
  };
}
