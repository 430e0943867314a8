import { hash } from 'node:crypto';

import { Cluster, Command } from 'ioredis';

import type { RedisClient } from '../../../shared/redis/connection.ts';

export interface ScriptHooks {
  /** The next call of a script is sent twice, as by a client that lost the first answer; the caller hears the second. */
  sendNextTwice(): void;
}

/** To be called before any script is defined on the client. `edit` may change the text of a script. */
export function hookScripts(client: RedisClient, edit: (lua: string) => string): ScriptHooks {
  if (client instanceof Cluster) throw new Error('The tests run on one server.');
  const load = client.script.bind(client);
  const send = client.sendCommand.bind(client);
  /** Name of a script's text → that of the changed one. */
  const names = new Map<string, string>();
  let isNextTwice = false;

  client.script = ((subcommand: 'LOAD', lua: string) => {
    names.set(hash('sha1', lua), hash('sha1', edit(lua)));
    return load(subcommand, edit(lua));
  }) as RedisClient['script'];

  function rename(command: Command, sha: string, name: string): Command {
    const text = String(command.toWritable({})).replace(sha, name);
    command.toWritable = () => text;
    return command;
  }

  client.sendCommand = (command, stream) => {
    if (command.name !== 'evalsha') return send(command, stream);
    const sha = String(command.args[0]);
    const name = names.get(sha);
    if (name === undefined) throw new Error('A script is called that was not loaded');
    rename(command, sha, name);
    if (isNextTwice) {
      isNextTwice = false;
      const first = new Command('evalsha', [name]);
      first.toWritable = command.toWritable.bind(command);
      send(first, stream);
    }
    return send(command, stream);
  };

  return {
    sendNextTwice() {
      isNextTwice = true;
    },
  };
}
