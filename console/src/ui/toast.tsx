import { useEffect, useState } from 'preact/hooks';

const EVENT = 'parley-toast';
const SHOWN_MS = 4_000;

/** A short notice that what one did was done. */
export function toast(text: string): void {
  dispatchEvent(new CustomEvent(EVENT, { detail: text }));
}

export function Toasts() {
  const [shown, setShown] = useState<readonly { id: number; text: string }[]>([]);
  useEffect(() => {
    const add = (event: Event) => {
      const id = performance.now();
      const text = (event as CustomEvent<string>).detail;
      setShown((before) => [...before.slice(-2), { id, text }]);
      setTimeout(() => {
        setShown((before) => before.filter((each) => each.id !== id));
      }, SHOWN_MS);
    };
    addEventListener(EVENT, add);
    return () => {
      removeEventListener(EVENT, add);
    };
  }, []);
  return (
    <div class="toasts" role="status">
      {shown.map(({ id, text }) => (
        <div key={id} class="toast">
          {text}
        </div>
      ))}
    </div>
  );
}
