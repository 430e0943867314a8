import { describe, expect, it } from '@jest/globals';

import { createEventBus } from '../../../../shared/lifecycle/event-bus.ts';

interface TestEvents {
  'thing.done': [name: string, count: number];
  'thing.begun': [name: string];
}

describe('an event bus', () => {
  it('lets neither the sender nor other listeners fail where a listener throws', () => {
    const faults: unknown[] = [];
    const bus = createEventBus<TestEvents>((name, error) => faults.push([name, error]));
    const heard: string[] = [];
    const broken = new Error('broken');
    bus.on('thing.begun', () => {
      throw broken;
    });
    bus.on('thing.begun', (name) => heard.push(name));

    bus.emit('thing.begun', 'a');

    expect(heard).toEqual(['a']);
    expect(faults).toEqual([['thing.begun', broken]]);
  });
});
