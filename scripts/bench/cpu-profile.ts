/** A `.cpuprofile` as V8 writes it; the parts that are read here. */
export interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string } }[];
  samples: number[];
  /** Microseconds between a sample and the one before it. */
  timeDeltas: number[];
}

export interface Cost {
  name: string;
  /** Of the time in which the process was not idle, 0 to 1. */
  share: number;
}

/** Where the process spent its own time, the largest first. */
export interface ProfileCosts {
  byFunction: Cost[];
  /** By package, or by folder of this project. */
  byModule: Cost[];
}

const IDLE: ReadonlySet<string> = new Set(['(idle)', '(root)']);

/** `skipMs`: how much of the beginning is left out, as the time it took to start. */
export function costsOf({ nodes, samples, timeDeltas }: CpuProfile, skipMs: number, limit: number): ProfileCosts {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const functions = new Map<string, number>();
  const modules = new Map<string, number>();
  let timeMicros = 0;
  let busyMicros = 0;
  for (const [index, id] of samples.entries()) {
    const spent = timeDeltas[index] ?? 0;
    timeMicros += spent;
    const frame = frames.get(id);
    if (frame === undefined || timeMicros < skipMs * 1000 || IDLE.has(frame.functionName)) continue;
    busyMicros += spent;
    const file = shortFile(frame.url);
    const name = `${frame.functionName === '' ? '(anonymous)' : frame.functionName}${file === '' ? '' : ` ${file}`}`;
    functions.set(name, (functions.get(name) ?? 0) + spent);
    const module = moduleOf(frame.functionName, file);
    modules.set(module, (modules.get(module) ?? 0) + spent);
  }
  const largest = (spent: Map<string, number>) =>
    [...spent]
      .map(([name, micros]) => ({ name, share: micros / busyMicros }))
      .sort((left, right) => right.share - left.share)
      .slice(0, limit);
  return { byFunction: largest(functions), byModule: largest(modules) };
}

/** From the package or the project on. */
function shortFile(url: string): string {
  const inPackage = url.lastIndexOf('/node_modules/');
  if (inPackage !== -1) return url.slice(inPackage + '/node_modules/'.length);
  const own = /\/((?:api|workers|shared|scripts)\/.*)$/.exec(url);
  return own?.[1] ?? url;
}

function moduleOf(functionName: string, file: string): string {
  if (file === '') return functionName.startsWith('(') ? functionName : '(native)';
  if (file.startsWith('node:')) return file.split('/').slice(0, 2).join('/');
  const parts = file.split('/');
  return parts.slice(0, file.startsWith('@') || /^(api|workers|shared|scripts)\//.test(file) ? 2 : 1).join('/');
}
