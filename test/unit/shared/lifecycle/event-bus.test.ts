import { describe, expect, it } from '@jest/globals';

import { createEventBus } from '../../../../shared/lifecycle/event-bus.ts';

interface TestEvents {
  'thing.done': [name: string, count: number];
  'thing.begun': [name: string];
}

describe('an event bus', () => {
  it('calls the listeners of an event in the order in which they were added', () => {
    const bus = createEventBus<TestEvents>(() => undefined);
    const calls: unknown[] = [];
    bus.on('thing.done', (name, count) => calls.push(['first', name, count]));
    bus.on('thing.done', (name, count) => calls.push(['second', name, count]));
    bus.on('thing.begun', (name) => calls.push(['begun', name]));

    bus.emit('thing.done', 'a', 2);

    expect(calls).toEqual([
      ['first', 'a', 2],
      ['second', 'a', 2],
    ]);
  });

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

  it('an event bus emits into the void without a listener', () => {
    const bus = createEventBus<TestEvents>(() => undefined);

    expect(() => {
      bus.emit('thing.begun', 'a');
    }).not.toThrow();
  });
});
