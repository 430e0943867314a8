import type { Redis } from 'ioredis';

/**
 * Lets all commands of one turn of the event loop share a write. Each command goes to the socket by itself and in order,
 * pipelines and transactions included; the socket holds them back until the turn ends. ioredis's own auto-pipelining copies
 * every defined script onto a pipeline each turn, and lets commands wait for the answers of the turn before
 * (docs/benchmarks/performance-log.md).
 */
export function corkTurns(client: Redis): Redis {
  const send = client.sendCommand.bind(client);
  const duplicate = client.duplicate.bind(client);
  /** The socket that is corked in this turn; a reconnect brings another one. */
  let corked: Redis['stream'] | undefined;

  function cork(socket: Redis['stream']): void {
    corked = socket;
    socket.cork();
    setImmediate(() => {
      if (corked === socket) corked = undefined;
      // Does nothing if the socket has ended: ioredis repeats what has no answer.
      socket.uncork();
    });
  }

  client.sendCommand = (command, stream) => {
    if (client.status === 'ready' && client.stream !== corked) cork(client.stream);
    return send(command, stream);
  };
  // BullMQ duplicates its connection to wait for jobs.
  client.duplicate = (override) => {
    const copy = duplicate(override);
    corkTurns(copy);
    return copy;
  };
  return client;
}
