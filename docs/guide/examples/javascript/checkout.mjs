// Opens a checkout and prints the address to send the buyer to. No packages; reads BASE_URL and API_KEY.
// node checkout.mjs 250000
const { BASE_URL, API_KEY } = process.env;
const [, , credits] = process.argv;
if (credits === undefined) {
  console.error('Usage: node checkout.mjs 250000 (how many credits to buy)');
  process.exit(2);
}

const response = await fetch(`${BASE_URL}/billing/checkout`, {
  method: 'POST',
  headers: {
    Authorization: `Bearer ${API_KEY}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': crypto.randomUUID(),
  },
  body: JSON.stringify({
    credits: Number(credits),
    success_url: 'https://shop.example/thanks',
    cancel_url: 'https://shop.example/back',
  }),
});
const checkout = await response.json();
if (!response.ok) throw new Error(checkout.error.message);
console.log(checkout.url);
