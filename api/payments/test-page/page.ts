import { toCredits } from '../../../shared/domain/pricing/pricing.ts';
import type { CheckoutRow, CheckoutStatus } from '../../../shared/infra/mongo/accounts/checkout-repository.ts';

/** Browsers apply `form-action` to the redirect behind the form, too. */
export function testPaymentPolicy({ successUrl, cancelUrl }: CheckoutRow): string {
  const origins = [successUrl, cancelUrl].map((url) => new URL(url).origin);
  return [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    `form-action 'self' ${[...new Set(origins)].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const NOTICES: Record<Exclude<CheckoutStatus, 'open'>, string> = {
  completed: 'This checkout has been paid.',
  processing: 'This checkout is being paid.',
  cancelled: 'This checkout was cancelled.',
  expired: 'This checkout has expired.',
  failed: 'This checkout could not be paid.',
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** An amount of minor units as people write it: `$5.00`. */
function priceText({ amount, currency }: CheckoutRow): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  return format.format(amount / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2));
}

const FORM = `<form method="post">
<button type="submit" name="action" value="pay">Pay</button>
<button type="submit" name="action" value="cancel">Cancel</button>
</form>`;

/** The test payment page: plain HTML, no script, nothing from elsewhere. */
export function renderTestPayment(checkout: CheckoutRow, status: CheckoutStatus): string {
  const credits = toCredits(checkout.creditsMicro).toLocaleString('en', { maximumFractionDigits: 6 });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Parley test payment</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem }
button { font: inherit; padding: .5rem 1.5rem; margin: .5rem .5rem 0 0 }
</style>
</head>
<body>
<h1>Test payment</h1>
<p>${escape(credits)} credits for ${escape(priceText(checkout))}. No money is taken.</p>
${status === 'open' ? FORM : `<p role="status">${NOTICES[status]}</p>`}
</body>
</html>
`;
}
