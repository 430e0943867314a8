import type { Server } from 'node:http';

/** Resolves once `server` accepts connections. A port in use is one sentence that says what to do. */
export function listen(server: Server, port: number, host: string, setting: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException): void => {
      const inUse = cause.code === 'EADDRINUSE';
      const sentence = inUse
        ? `Port ${port} is in use; stop what uses it or set ${setting} to another port.`
        : `Port ${port} cannot be opened on ${host}; check HOST and ${setting}.`;
      reject(new Error(sentence, inUse ? undefined : { cause }));
    };
    server.once('error', onError);
    server.listen(port, host, () => {
      server.off('error', onError);
      resolve();
    });
  });
}
