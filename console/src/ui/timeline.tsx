import { duration } from './format.ts';
import type { Tone } from './parts.tsx';

export interface Span {
  label: string;
  /** Unix seconds with decimals. */
  from: number;
  to: number;
  tone?: Tone | 'quiet';
  note?: string;
}

/** Spans of one request, all on the same scale: from the first beginning to the last end. */
export function Timeline({ spans }: { spans: readonly Span[] }) {
  const start = Math.min(...spans.map(({ from }) => from));
  const whole = Math.max(0.001, Math.max(...spans.map(({ to }) => to)) - start);
  return (
    <div class="timeline" role="list">
      {spans.map(({ label, from, to, tone, note }, at) => {
        const length = duration((to - from) * 1_000);
        return (
          <div key={at} role="listitem" style={{ display: 'contents' }}>
            <span>
              {label} {note !== undefined && <span class="muted">{note}</span>}
            </span>
            <span class="track" title={`${duration((from - start) * 1_000)} after acceptance, for ${length}`}>
              <span
                class="span"
                data-tone={tone}
                style={{
                  left: `min(${((from - start) / whole) * 100}%, calc(100% - 3px))`,
                  width: `${((to - from) / whole) * 100}%`,
                }}
              />
            </span>
            <span class="number muted">{length}</span>
          </div>
        );
      })}
    </div>
  );
}
