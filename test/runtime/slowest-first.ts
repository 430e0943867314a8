import { createRequire } from 'node:module';

import type testSequencer from '@jest/test-sequencer';

// Its types are those of its CommonJS build.
const { default: Sequencer } = createRequire(import.meta.url)('@jest/test-sequencer') as typeof testSequencer;

/** The projects whose tests start whole processes. */
const PROCESSES = ['e2e', 'faults'];

type Files = Parameters<InstanceType<typeof Sequencer>['sort']>[0];

/**
 * Jest's own order is what failed, then what took longest the last time, then the largest file. In a new clone there is
 * no last time, and the tests of whole processes are small files: they came last, when nothing is left to run while
 * they wait.
 */
export default class SlowestFirst extends Sequencer {
  override async sort(files: Files): Promise<Files> {
    const rank = ({ duration, context }: Files[number]) =>
      duration === undefined && PROCESSES.includes(context.config.displayName?.name ?? '') ? 0 : 1;
    return (await super.sort(files)).sort((one, other) => rank(one) - rank(other));
  }
}
