import type { Redis } from 'ioredis';

/**
 * Lets the commands of one turn of the event loop share a write to the socket. ioredis's own auto-pipelining makes a
 * pipeline object a turn, onto which it copies every defined script, and a command waits for the answers of the turn
 * before (docs/decisions/0054-commands-of-a-turn-share-a-write.md). Here each command goes to the socket by itself and
 * in order, pipelines and transactions included; only the socket holds them back.
 */
export function corkTurns(client: Redis): Redis {
  const send = client.sendCommand.bind(client);
  const duplicate = client.duplicate.bind(client);
  /** The socket that holds back what this turn writes; a reconnect brings another one. */
  let corked: Redis['stream'] | undefined;

  function cork(socket: Redis['stream']): void {
    corked = socket;
    socket.cork();
    setImmediate(() => {
      if (corked === socket) corked = undefined;
      // Where the socket has ended meanwhile, this does nothing: ioredis sends again what has no answer.
      socket.uncork();
    });
  }

  client.sendCommand = (command, stream) => {
    if (client.status === 'ready' && client.stream !== corked) cork(client.stream);
    return send(command, stream);
  };
  // BullMQ duplicates its connection for the wait for jobs.
  client.duplicate = (override) => {
    const copy = duplicate(override);
    corkTurns(copy);
    return copy;
  };
  return client;
}
