/** Numbers, money and times as people read them, in their own locale; words of the API. */
import type { components } from '../../../scripts/admin-api.d.ts'; // npm run types

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const precise = new Intl.NumberFormat(undefined, { maximumFractionDigits: 6 });
const fine = new Intl.NumberFormat(undefined, { minimumFractionDigits: 4, maximumFractionDigits: 4 });
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const TIME = {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
} as const;
const moment = new Intl.DateTimeFormat(undefined, TIME);
const momentOfYear = new Intl.DateTimeFormat(undefined, { ...TIME, year: 'numeric' });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

/** Tokens, requests and other counts. */
export const count = (value: number): string => whole.format(value);
/** For large figures: 1.2M. */
export const compact = (value: number): string => (value < 10_000 ? whole : short).format(value);
/** Credits have up to six decimals; large amounts are read without them. */
export const credits = (value: number): string => (Math.abs(value) >= 1_000 ? whole : precise).format(value);
export const exact = (value: number): string => precise.format(value);
/** In whole units of a currency; calls cost parts of a cent, so all figures of a column have four decimals. */
export const cost = (value: number): string => fine.format(value);
export const share = (value: number): string => percent.format(value);

/** `amount` is in the smallest unit of its currency, as in the API. */
export function money(amount: number, currency: string): string {
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency: currency.toUpperCase() });
  const { maximumFractionDigits = 2 } = format.resolvedOptions();
  return format.format(amount / 10 ** maximumFractionDigits);
}

/** Without the year where it is this one. */
export function localTime(seconds: number): string {
  const date = new Date(seconds * 1_000);
  return (date.getFullYear() === new Date().getFullYear() ? moment : momentOfYear).format(date);
}
const hourOfDay = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });

/** A mark of a time axis: the time of day, and the day where it begins or where marks are days apart. */
export function axisTime(seconds: number, stepSeconds: number): string {
  const date = new Date(seconds * 1_000);
  const isDay = stepSeconds >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0);
  return (isDay ? dayOfYear : hourOfDay).format(date);
}
export const localDay = (seconds: number): string => day.format(seconds * 1_000);
export const utcTime = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** A length of time, with the unit that fits. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${whole.format(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`;
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  const at = Math.min(units.length - 1, value < 1 ? 0 : Math.floor(Math.log10(value) / 3));
  return `${(value / 1_000 ** at).toFixed(at === 0 ? 0 : 1)} ${units[at] ?? ''}`;
}

/** A word of the API as people write it: `in_progress` is "In progress". */
export const words = (text: string): string => {
  const spaced = text.replaceAll(/[_.]/g, ' ');
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
};

export const STATUSES = ['completed', 'failed', 'cancelled', 'refused'] as const;

type Tier = NonNullable<components['schemas']['AdminRequest']['tier']>;
const tiers = { mobius: true, oloid: true, embedding: true, moderation: true } satisfies Record<Tier, true>;
/** The tiers of a request in both APIs; one that is missing does not compile. */
export const TIERS = Object.keys(tiers) as Tier[];
