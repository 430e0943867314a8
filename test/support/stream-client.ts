import { waitFor } from './chat.ts';

/** A stream read over a real socket, as it comes. */
export interface OpenStream {
  status: number;
  headers: Headers;
  /** What has come so far, comments included. */
  text(): string;
  /** Resolves once `text()` holds `part`. */
  until(part: string): Promise<void>;
  /** Resolves with the whole text once the server has closed the stream. */
  end(): Promise<string>;
  /** Closes the connection. */
  leave(): void;
}

/** Resolves with the head: at the first chunk, the first ping or an error. */
export async function openStream(url: string, key: string, body: object, headers = {}): Promise<OpenStream> {
  const controller = new AbortController();
  const response = await fetch(`${url}/platform/v1/chat/stream`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      'Accept-Encoding': 'gzip, br',
      ...headers,
    },
    body: JSON.stringify(body),
    signal: controller.signal,
  });
  let text = '';
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
    return text;
  })();
  reading.catch(() => undefined);
  return {
    status: response.status,
    headers: response.headers,
    text: () => text,
    until: async (part) => {
      await waitFor(() => (text.includes(part) ? true : undefined), `«${part}» in a stream`);
    },
    end: () => reading,
    leave: () => {
      controller.abort();
    },
  };
}
