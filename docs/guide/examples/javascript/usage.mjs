// Prints this month's tokens and credits by entity. No packages; reads BASE_URL and API_KEY.
const { BASE_URL, API_KEY } = process.env;

const response = await fetch(`${BASE_URL}/usage?group_by=entity_id`, {
  headers: { Authorization: `Bearer ${API_KEY}` },
});
if (!response.ok) throw new Error((await response.json()).error.message);
for (const bucket of (await response.json()).data)
  for (const { entity_id, total_tokens, credits } of bucket.results) console.log(entity_id, total_tokens, credits);
