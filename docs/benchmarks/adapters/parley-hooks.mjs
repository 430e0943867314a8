/**
 * The hooks of parley.json. Each reads its environment and prints one line of JSON. BASE_URL, ADMIN_URL and ADMIN_TOKEN
 * are the caller's own; the rest comes from the benchmark (docs/benchmarks/stateful.md).
 */
const { BASE_URL, ADMIN_URL, ADMIN_TOKEN, TOKENS, REQUESTS_PER_MINUTE, ACCOUNT_KEY, LINES, BATCH } = process.env;

async function call(url, token, body, type = 'application/json') {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': type },
    body: typeof body === 'object' ? JSON.stringify(body) : body,
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

const hooks = {
  async open_account() {
    const tenant = await call(`${ADMIN_URL}/tenants`, ADMIN_TOKEN, {
      name: 'Benchmark',
      credits: Number(TOKENS || 1_000_000_000),
      rpm: Number(REQUESTS_PER_MINUTE || 1_000_000),
      tpm: 1_000_000_000,
      chat_rpm: 1_000_000,
      stream_rpm: 1_000_000,
      tenant_rpm: null,
      tenant_tpm: null,
      max_in_flight: null,
    });
    const key = await call(`${ADMIN_URL}/tenants/${tenant.id}/keys`, ADMIN_TOKEN, { name: 'bench', scopes: ['*'] });
    return { key: key.value, id: tenant.id };
  },

  async statement() {
    const all = [];
    for (let after = ''; ; after = `&after=${all.at(-1).id}`) {
      const page = await call(`${BASE_URL}/billing/transactions?limit=100${after}`, ACCOUNT_KEY);
      all.push(...page.data);
      if (!page.has_more) break;
    }
    const usage = all.filter(({ type }) => type === 'usage');
    const sum = (rows) => rows.reduce((total, { credits }) => total + credits, 0);
    return {
      granted: sum(all) - sum(usage),
      charged: -sum(usage),
      balance: (await call(`${BASE_URL}/billing`, ACCOUNT_KEY)).balance,
      bookings: usage.map(({ request_id }) => request_id),
    };
  },

  async submit_batch() {
    const body = { messages: [{ role: 'user', content: 'Which way does a river run?' }] };
    const lines = Array.from({ length: Number(LINES) }, (_, at) => JSON.stringify({ custom_id: `line-${at}`, body }));
    return (await call(`${BASE_URL}/batches`, ACCOUNT_KEY, lines.join('\n'), 'application/x-ndjson')).id;
  },

  cancel_batch: () => call(`${BASE_URL}/batches/${JSON.parse(BATCH)}/cancel`, ACCOUNT_KEY, {}),
};

console.log(JSON.stringify(await hooks[process.argv[2]]()));
