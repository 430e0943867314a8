export interface Emitter<Events extends Record<keyof Events, unknown[]>> {
  /** Never throws and never waits. Without listeners it costs one look-up. */
  emit<Name extends keyof Events>(name: Name, ...args: Events[Name]): void;
}

export interface EventBus<Events extends Record<keyof Events, unknown[]>> extends Emitter<Events> {
  /** Listeners are called in the order in which they were added. */
  on<Name extends keyof Events>(name: Name, listener: (...args: Events[Name]) => void): void;
}

/**
 * A typed emitter for metrics, logs and events: `Events` maps a name to its listeners' arguments. One object instead of
 * arguments would be allocated even without listeners. A listener that throws is reported to `onFault` and breaks
 * neither the sender nor other listeners.
 */
export function createEventBus<Events extends Record<keyof Events, unknown[]>>(
  onFault: (name: keyof Events, error: unknown) => void,
): EventBus<Events> {
  const listeners: { [Name in keyof Events]?: ((...args: Events[Name]) => void)[] } = {};
  return {
    on(name, listener) {
      (listeners[name] ??= []).push(listener);
    },
    emit(name, ...args) {
      const called = listeners[name];
      if (called === undefined) return;
      for (const listener of called) {
        try {
          listener(...args);
        } catch (error) {
          onFault(name, error);
        }
      }
    },
  };
}
