import { startServer } from '../embedded/server-process.ts';
import type { ServerOptions, ServerProcess } from '../embedded/server-process.ts';
import { createCloser } from '../../shared/lifecycle/closer.ts';
import type { Log } from '../embedded/run-step.ts';

type Supervised = Pick<ServerProcess, 'exited' | 'stop' | 'kill'>;

/** Why everything has to stop, with the exit code for that. */
export interface End {
  exitCode: number;
  sentence?: string;
}

export type Supervisor = ReturnType<typeof createSupervisor>;

/** Processes end within their own grace: a worker finishes its requests, a database its writes. */
const NO_LIMIT = { limitMs: Infinity };

/** Supervises the processes of one `npm start`, from the first one's start to the last one's end. */
export function createSupervisor(log: Log) {
  const abort = new AbortController();
  const { promise: ended, resolve: resolveEnded } = Promise.withResolvers<End>();
  const all: Supervised[] = [];
  const groups = new Map<string, Supervised[]>();
  const closer = createCloser((name, error) => {
    log(`Stopping ${name} failed: ${error instanceof Error ? error.message : String(error)}`);
  });

  function requestEnd(end: End): void {
    if (abort.signal.aborted) return;
    abort.abort();
    resolveEnded(end);
  }

  function watch(name: string, process: Supervised): void {
    all.push(process);
    void process.exited.then((how) => {
      requestEnd({ exitCode: 1, sentence: `${name} ended by itself (${how}), so everything is stopped.` });
    });
  }

  return {
    /** Aborts as soon as everything has to stop: ends whatever is under way. */
    signal: abort.signal,
    /** Resolves with the reason when the user, or a process that has ended, causes the stop. */
    ended,
    requestEnd,
    /** Takes over a running process; it is stopped before the processes that were taken over earlier. */
    adopt<T extends Supervised>(name: string, process: T): T {
      closer.defer(name, () => process.stop(), NO_LIMIT);
      watch(name, process);
      return process;
    },
    /** Starts a process; those of one `group` are stopped at the same time. */
    async start(group: string, options: ServerOptions): Promise<void> {
      let members = groups.get(group);
      if (members === undefined) {
        const created: Supervised[] = [];
        members = created;
        groups.set(group, created);
        closer.defer(group, () => Promise.all(created.map((member) => member.stop())), NO_LIMIT);
      }
      const process = await startServer({ ...options, signal: abort.signal });
      members.push(process);
      watch(options.name, process);
    },
    /** Registers a final step, to run after all processes that are taken over later have ended. */
    defer: (name: string, close: () => unknown): void => {
      closer.defer(name, close, NO_LIMIT);
    },
    /** Stops everything in reverse; safe to call once `ended` has resolved or a start has failed. */
    async close(): Promise<void> {
      abort.abort();
      await closer.close();
    },
    /** SIGKILL for everything, for a user who does not want to wait. */
    killAll(): void {
      for (const process of all) process.kill();
    },
  };
}
