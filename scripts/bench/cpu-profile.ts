interface Frame {
  functionName: string;
  url: string;
}

/** A `.cpuprofile` as V8 writes it: the parts that are read here. */
export interface CpuProfile {
  nodes: { id: number; callFrame: Frame; children?: number[] }[];
  /** Microseconds of the clock that `process.hrtime` reads. */
  startTime: number;
  samples: number[];
  /** Microseconds between a sample and the one before it. */
  timeDeltas: number[];
}

export interface Cost {
  name: string;
  /** Share of the time in which the process was not idle, 0 to 1. */
  share: number;
}

/** Where the process spent its time, largest share first. */
export interface ProfileCosts {
  /** A function's own time. */
  byFunction: Cost[];
  /** By package, or folder of this project, including what Node.js itself does for it. */
  byModule: Cost[];
}

const IDLE: ReadonlySet<string> = new Set(['(idle)', '(root)']);
const OWN_FILE = /\/((?:api|workers|shared|scripts)\/.*)$/;

/** Ignores everything before `fromMicros` (same clock), which is the start-up. */
export function costsOf(profile: CpuProfile, fromMicros: number, limit: number): ProfileCosts {
  const { samples, timeDeltas } = profile;
  const places = locate(profile);
  const functions = new Map<string, number>();
  const modules = new Map<string, number>();
  let timeMicros = profile.startTime;
  let busyMicros = 0;
  for (const [index, id] of samples.entries()) {
    const spent = timeDeltas[index] ?? 0;
    timeMicros += spent;
    const place = places.get(id);
    if (place === undefined || timeMicros < fromMicros) continue;
    busyMicros += spent;
    functions.set(place.name, (functions.get(place.name) ?? 0) + spent);
    modules.set(place.module, (modules.get(place.module) ?? 0) + spent);
  }
  const largest = (spent: Map<string, number>) =>
    [...spent]
      .map(([name, micros]) => ({ name, share: micros / busyMicros }))
      .sort((left, right) => right.share - left.share)
      .slice(0, limit);
  return { byFunction: largest(functions), byModule: largest(modules) };
}

interface Place {
  name: string;
  module: string;
}

/** The function and module to which each node of the call tree belongs; idle ones are left out. */
function locate({ nodes }: CpuProfile): Map<number, Place> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const places = new Map<number, Place>();
  for (const { id, callFrame } of nodes) {
    if (IDLE.has(callFrame.functionName)) continue;
    const file = fileOf(callFrame);
    const functionName = callFrame.functionName === '' ? '(anonymous)' : callFrame.functionName;
    let module = moduleOf(file);
    for (let up = parents.get(id); module === undefined && up !== undefined; up = parents.get(up)) {
      module = moduleOf(fileOf(byId.get(up)?.callFrame));
    }
    places.set(id, {
      name: file === '' ? functionName : `${functionName} ${file}`,
      module: module ?? '(Node.js alone)',
    });
  }
  return places;
}

/** The path within node_modules or this project. */
function fileOf(frame: Frame | undefined): string {
  const url = frame?.url ?? '';
  const inPackage = url.lastIndexOf('/node_modules/');
  if (inPackage !== -1) return url.slice(inPackage + '/node_modules/'.length);
  return OWN_FILE.exec(url)?.[1] ?? url;
}

function moduleOf(file: string): string | undefined {
  if (!file.includes('/') || /^(node|wasm):/.test(file)) return undefined;
  const depth = /^(api|workers|shared|scripts|@[^/]*)\//.test(file) ? 2 : 1;
  return file.split('/').slice(0, depth).join('/');
}
