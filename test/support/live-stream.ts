/** A client of the chat routes behind a real socket, which reads a stream as it comes. */
export interface LiveStream {
  status: number;
  requestId: string;
  /** What has come so far; grows until `ended`. */
  read: StreamRead;
  /** Resolves at the end of the connection, however it came. */
  ended: Promise<StreamRead>;
  /** Leaves, as a client that closes its window. */
  close(): void;
}

interface StreamRead {
  /** Sequence numbers of the events, in the order of their coming. */
  ids: number[];
  text: string;
  /** Behind the last whole event: a comment, if anything. */
  rest: string;
  finishReason: string | undefined;
  errorCode: string | undefined;
  usage: { prompt_tokens: number; completion_tokens: number } | undefined;
  /** `[DONE]` came. */
  isDone: boolean;
  /** The connection broke instead of ending. */
  isBroken: boolean;
  /** `performance.now()` of the first and the latest text, and of the end. */
  firstTextAt: number;
  lastTextAt: number;
  endedAt: number;
}

interface Chunk {
  choices: { delta: { content?: string }; finish_reason: string | null }[];
  usage?: StreamRead['usage'];
  error?: { code: string };
}

function newRead(): StreamRead {
  return {
    ids: [],
    text: '',
    rest: '',
    finishReason: undefined,
    errorCode: undefined,
    usage: undefined,
    isDone: false,
    isBroken: false,
    firstTextAt: 0,
    lastTextAt: 0,
    endedAt: 0,
  };
}

function readEvent(read: StreamRead, block: string): void {
  const id = /^id: (\d+)$/m.exec(block)?.[1];
  const data = /^data: (.*)$/m.exec(block)?.[1];
  if (id === undefined || data === undefined) return;
  read.ids.push(Number(id));
  if (data === '[DONE]') {
    read.isDone = true;
    return;
  }
  // What the service sends is what these tests are about; a chunk of another form fails them.
  const { choices, usage, error } = JSON.parse(data) as Chunk;
  const content = choices[0]?.delta.content;
  if (content !== undefined) {
    read.text += content;
    read.lastTextAt = performance.now();
    if (read.firstTextAt === 0) read.firstTextAt = read.lastTextAt;
  }
  read.finishReason ??= choices[0]?.finish_reason ?? undefined;
  read.usage ??= usage;
  read.errorCode ??= error?.code;
}

async function readBody(response: Response, read: StreamRead): Promise<StreamRead> {
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for await (const bytes of response.body ?? []) {
      const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
      rest = read.rest = blocks.pop() ?? '';
      for (const block of blocks) readEvent(read, block);
    }
  } catch {
    read.isBroken = true;
  }
  read.endedAt = performance.now();
  return read;
}

export function post(url: string, key: string, path: string, body: object, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/platform/v1${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    ...init,
  });
}

/** Resolves with the status line. An error's body is read and thrown away. */
export async function openLiveStream(url: string, key: string, body: object): Promise<LiveStream> {
  const controller = new AbortController();
  const response = await post(url, key, '/chat/stream', body, { signal: controller.signal });
  const read = newRead();
  return {
    status: response.status,
    requestId: response.headers.get('x-request-id') ?? '',
    read,
    ended: readBody(response, read),
    close: () => {
      controller.abort();
    },
  };
}
