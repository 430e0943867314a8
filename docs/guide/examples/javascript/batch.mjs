// Sends a file of requests as a batch and prints the results. No packages; reads BASE_URL and API_KEY.
// node batch.mjs requests.ndjson nightly-1
import { openAsBlob } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const { BASE_URL, API_KEY, POLL_MS = '5000' } = process.env;
const [, , file, idempotencyKey] = process.argv;
if (idempotencyKey === undefined) {
  console.error('Usage: node batch.mjs requests.ndjson nightly-1 (a file of lines, and a name to send it once)');
  process.exit(2);
}

async function call(path, options = {}) {
  const headers = { Authorization: `Bearer ${API_KEY}`, ...options.headers };
  const response = await fetch(`${BASE_URL}${path}`, { ...options, headers });
  if (!response.ok) throw new Error((await response.json()).error.message);
  return response;
}

const created = await call('/batches', {
  method: 'POST',
  headers: { 'Content-Type': 'application/x-ndjson', 'Idempotency-Key': idempotencyKey },
  body: await openAsBlob(file),
});
let batch = await created.json();

while (['validating', 'in_progress', 'cancelling'].includes(batch.status)) {
  await sleep(Number(POLL_MS));
  batch = await (await call(`/batches/${batch.id}`)).json();
  console.log(batch.status, batch.request_counts, batch.waiting_for);
}

const { body } = await call(`/batches/${batch.id}/results`);
let rest = '';
for await (const text of body.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) {
    const { custom_id, response, error } = JSON.parse(line);
    console.log(custom_id, error?.message ?? response.choices[0].message.content);
  }
}
