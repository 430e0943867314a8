import { createRequire } from 'node:module';

import type testSequencer from '@jest/test-sequencer';

// Its types are those of its CommonJS build.
const { default: Sequencer } = createRequire(import.meta.url)('@jest/test-sequencer') as typeof testSequencer;

type Files = Parameters<InstanceType<typeof Sequencer>['sort']>[0];

/** So much of the other files is spread between those of whole processes; the rest comes behind the last of them. */
const SPREAD = 0.75;

/**
 * Jest's own order is what failed, then what took longest the last time, then the largest file. In a new clone there is
 * no last time, and the tests of whole processes are small files: they came last, when nothing is left to run while
 * they wait. All of them first leave the processor idle. So two come first, and the others one by one.
 */
export default class SlowestFirst extends Sequencer {
  override async sort(files: Files): Promise<Files> {
    const isUnknown = ({ duration, context }: Files[number]) =>
      duration === undefined && context.config.displayName?.name === 'e2e';
    const sorted = await super.sort(files);
    const [first, ...waiting] = sorted.filter(isUnknown);
    const others = sorted.filter((file) => !isUnknown(file));
    if (first === undefined) return others;
    const step = Math.floor((others.length * SPREAD) / (waiting.length + 1));
    const spread = waiting.flatMap((file, index) => [file, ...others.slice(index * step, (index + 1) * step)]);
    return [first, ...spread, ...others.slice(waiting.length * step)];
  }
}
