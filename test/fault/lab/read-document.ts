import type { ServedDocument } from '../../fuzz/read-document.ts';
import { callJson } from '../../../scripts/harness/http.ts';
import type { Lab } from './lab.ts';

/** The API document, as an ingress serves it. */
export async function readDocument({ urlOf }: Pick<Lab, 'urlOf'>): Promise<ServedDocument> {
  const { body } = await callJson('GET', `${urlOf(0)}/openapi.json`);
  // What the ingress serves is what api/openapi makes.
  return body as unknown as ServedDocument;
}
