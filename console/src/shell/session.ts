import { useSyncExternalStore } from 'preact/compat';

export type Session = ReturnType<typeof createSession>;

/** The secret of whoever uses this tab. It is kept in the tab alone: closing it forgets the secret. */
export function createSession(name: string) {
  const listeners = new Set<() => void>();
  let notice: string | undefined;
  const tell = () => {
    for (const listener of listeners) listener();
  };
  const secret = () => sessionStorage.getItem(name) ?? undefined;
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };

  return {
    secret,
    /** Why the last session ended, for the form that begins the next one. */
    notice: () => notice,
    begin(value: string): void {
      sessionStorage.setItem(name, value);
      notice = undefined;
      tell();
    },
    end(reason?: string): void {
      sessionStorage.removeItem(name);
      notice = reason;
      tell();
    },
    useSecret: () => useSyncExternalStore(subscribe, secret),
  };
}
