/** Begins a stream that another reader takes over, as a backend does for a browser. Resolves with the request's id. */
export async function begin({ baseURL, apiKey, model, content }) {
  const response = await fetch(`${baseURL}/chat/stream`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
  });
  if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
  await response.body.cancel();
  return response.headers.get('X-Request-Id');
}
