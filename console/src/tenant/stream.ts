import { ApiError } from '../shell/api.ts';
import { raw } from './api.ts';
import type { Call, ToolCall } from './call.ts';

interface Delta {
  content?: string | null;
  refusal?: string | null;
  /** The first part of a call has its id and name; arguments come in parts. */
  tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

interface Chunk {
  id: string;
  /** Absent in the event after the last chunk of a failed answer, which says the error again and has no number. */
  choices?: { delta: Delta; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  error?: { code: string; message: string; request_id: string };
}

/** Everything that is known of a stream, after any number of interruptions. */
export interface StreamState {
  phase: 'idle' | 'streaming' | 'cut' | 'done' | 'failed';
  requestId: string | undefined;
  text: string;
  toolCalls: readonly ToolCall[];
  /**
   * Every `data:` line as it came, so that what was resumed can be compared byte for byte. Each is an event, and events
   * are numbered from 1, on the endpoint of OpenAI's clients, too, whose streams do not say the numbers.
   */
  lines: readonly string[];
  startedAt: number;
  firstTokenMs: number | undefined;
  durationMs: number | undefined;
  resumes: number;
  queue: string | undefined;
  finishReason: string | undefined;
  usage: Chunk['usage'];
  error: unknown;
}

export const IDLE: StreamState = {
  phase: 'idle',
  requestId: undefined,
  text: '',
  toolCalls: [],
  lines: [],
  startedAt: 0,
  firstTokenMs: undefined,
  durationMs: undefined,
  resumes: 0,
  queue: undefined,
  finishReason: undefined,
  usage: undefined,
  error: undefined,
};

function withCalls(known: readonly ToolCall[], parts: NonNullable<Delta['tool_calls']>): readonly ToolCall[] {
  const calls = [...known];
  for (const { index, id, function: part } of parts) {
    const before = calls[index] ?? { id: id ?? '', name: '', arguments: '' };
    const { name = '', arguments: more = '' } = part ?? {};
    calls[index] = { ...before, name: before.name + name, arguments: before.arguments + more };
  }
  return calls;
}

/** Adds one event of a stream to what is known. */
function withLine(state: StreamState, line: string): StreamState {
  if (line.startsWith(': queue')) return { ...state, queue: line.slice(2) };
  if (!line.startsWith('data:')) return state;
  const lines = [...state.lines, line];
  const data = line.slice(5).trim();
  if (data === '[DONE]') return { ...state, lines };
  const chunk = JSON.parse(data) as Chunk;
  if (chunk.choices === undefined) return state;
  const [choice] = chunk.choices;
  const { content, refusal, tool_calls: parts = [] } = choice?.delta ?? {};
  const text = content ?? refusal ?? '';
  const isFirst = (text !== '' || parts.length > 0) && state.firstTokenMs === undefined;
  return {
    ...state,
    lines,
    requestId: chunk.id,
    queue: undefined,
    text: state.text + text,
    toolCalls: parts.length === 0 ? state.toolCalls : withCalls(state.toolCalls, parts),
    ...(isFirst ? { firstTokenMs: performance.now() - state.startedAt } : {}),
    finishReason: choice?.finish_reason ?? state.finishReason,
    usage: chunk.usage ?? state.usage,
    ...(chunk.error === undefined ? {} : { error: new ApiError(new Response(), chunk) }),
  };
}

async function read(response: Response, onLine: (line: string) => void): Promise<void> {
  if (response.body === null) return;
  let rest = '';
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  }
}

/** One request after the other, each with its stream. `show` is called with every change. */
export function createStream(show: (state: StreamState) => void) {
  let state = IDLE;
  let connection = new AbortController();
  const set = (changes: Partial<StreamState>) => {
    state = { ...state, ...changes };
    show(state);
  };

  /** Reads until the end, until the connection is cut, or until it fails; what it was cut from stays. */
  async function follow(open: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    const own = (connection = new AbortController());
    try {
      const response = await open(own.signal);
      set({ requestId: response.headers.get('X-Request-Id') ?? state.requestId });
      await read(response, (line) => {
        if (own.signal.aborted) return;
        state = withLine(state, line);
        show(state);
      });
      const isWhole = state.lines.at(-1)?.trim() === 'data: [DONE]';
      set({
        phase: isWhole || response.status === 204 ? 'done' : 'failed',
        durationMs: performance.now() - state.startedAt,
      });
    } catch (error) {
      if (own !== connection) return;
      // A refusal is final; a connection that went away can be taken up again.
      if (error instanceof ApiError) set({ phase: 'failed', error, requestId: error.requestId });
      else set(state.requestId === undefined ? { phase: 'failed', error } : { phase: 'cut' });
    }
  }

  return {
    start({ path, body }: Call): Promise<void> {
      connection.abort();
      state = { ...IDLE, phase: 'streaming', startedAt: performance.now() };
      show(state);
      return follow((signal) =>
        raw(path, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
          signal,
        }),
      );
    },
    /** Drops the connection, as a lost network does; the service goes on. */
    cut(): void {
      connection.abort();
    },
    /** Goes on behind the last event that came. */
    resume(): Promise<void> {
      set({ phase: 'streaming', resumes: state.resumes + 1 });
      const { requestId = '', lines } = state;
      return follow((signal) => raw(`/chat/stream/${requestId}?starting_after=${lines.length}`, { signal }));
    },
    async cancel(): Promise<void> {
      try {
        if (state.requestId !== undefined) await raw(`/chat/${state.requestId}/cancel`, { method: 'POST' });
      } catch (error) {
        set({ error });
      }
    },
    leave(): void {
      connection.abort();
    },
  };
}
