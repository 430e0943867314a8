import type { RedisClient } from '../../../shared/infra/redis/connection.ts';

type Command = (...args: unknown[]) => Promise<unknown>;

export interface ScriptHooks {
  /** The next call of a script is sent twice, as by a client that lost the first answer; the caller hears the second. */
  sendNextTwice(): void;
}

/** To be called before any script is defined on the client. `edit` may change the text of a script. */
export function hookScripts(client: RedisClient, edit: (lua: string) => string): ScriptHooks {
  const define = client.defineCommand.bind(client);
  // defineCommand adds methods that ioredis cannot type.
  const commands = client as unknown as Record<string, Command>;
  let isNextTwice = false;
  client.defineCommand = (name, definition) => {
    define(name, { ...definition, lua: edit(definition.lua) });
    const send = commands[name];
    if (send === undefined) throw new Error(`The script ${name} was not defined`);
    commands[name] = function sendHooked(this: unknown, ...args) {
      // A pipeline takes over the client's methods: what comes from there is on its way already.
      if (this !== client || !isNextTwice) return send.apply(this, args);
      isNextTwice = false;
      return send.apply(client, args).then(() => send.apply(client, args));
    };
  };
  return {
    sendNextTwice() {
      isNextTwice = true;
    },
  };
}
