import { Presets, SingleBar } from 'cli-progress';

export interface Progress {
  add(failed: boolean): void;
  /** A request was refused with 429 and has to wait. */
  wait(): void;
  /** Subtracts turns that will not be sent from the total. */
  skip(turns: number): void;
  stop(): void;
}

/** The interval of lines if there is no terminal. */
const LINE_MS = 5_000;

/** A bar on a terminal, or else a line every few seconds. */
export function createProgress(total: number, print: (line: string) => void, isTerminal: boolean): Progress {
  let done = 0;
  let failed = 0;
  let waits = 0;
  let planned = total;
  const bar = isTerminal ? createBar(total) : undefined;
  const timer = isTerminal
    ? undefined
    : setInterval(() => {
        print(`drive | ${done} of ${planned} requests, ${failed} failed, ${waits} times told to wait (429)`);
      }, LINE_MS);
  return {
    add(hasFailed) {
      done += 1;
      if (hasFailed) failed += 1;
      bar?.update(done, { failed });
    },
    wait() {
      waits += 1;
      bar?.update(done, { waits });
    },
    skip(turns) {
      planned -= turns;
      bar?.setTotal(planned);
    },
    stop() {
      bar?.stop();
      clearInterval(timer);
    },
  };
}

function createBar(total: number): SingleBar {
  const format =
    '{bar} {value}/{total} requests | {failed} failed, {waits} waits | {duration_formatted}, {eta_formatted} left';
  const bar = new SingleBar({ format, hideCursor: true, clearOnComplete: true }, Presets.shades_classic);
  bar.start(total, 0, { failed: 0, waits: 0 });
  return bar;
}
