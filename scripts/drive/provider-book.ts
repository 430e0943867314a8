import type { RequestDetail } from '../simulated-provider/stats.ts';
import type { ProviderBook } from './verify.ts';

/** Asks the simulated provider what it knows about these requests: `GET /stats/requests/{id}`. */
export async function readProviderBook(providerUrl: string, requestIds: readonly string[]): Promise<ProviderBook> {
  const book = new Map<string, RequestDetail | undefined>();
  for (const id of requestIds) {
    const response = await fetch(`${providerUrl}/stats/requests/${encodeURIComponent(id)}`);
    const text = await response.text();
    // The simulated provider's own type.
    book.set(id, response.status === 200 ? (JSON.parse(text) as RequestDetail) : undefined);
  }
  return book;
}
