import type { PathParam } from '../contract/endpoints.ts';
import { id, text } from './schema.ts';
import type { JsonSchema } from './schema.ts';

interface PathParameter {
  description: string;
  schema: JsonSchema;
  example: string;
}

/** Every `:name` of the table's paths; a new one does not compile without its row. */
export const PATH_PARAMETERS: Readonly<Record<PathParam, PathParameter>> = {
  requestId: { description: 'The request.', schema: id('req'), example: 'req_4fK2mZ8sQ1xY7bN3vC6tR9wE' },
  batchId: { description: 'The batch.', schema: id('batch'), example: 'batch_1aB2cD3eF4gH5iJ6kL7mN8oP' },
  keyId: { description: 'The API key.', schema: id('key'), example: 'key_9dJ3nR5wT7yU1pL8sA2fG4hK' },
  entityId: {
    description: "The caller's own id of the entity, percent-encoded.",
    schema: { ...text(), minLength: 1, maxLength: 256 },
    example: 'pupil-7',
  },
  webhookId: { description: 'The webhook.', schema: id('whk'), example: 'whk_2bV6cX8zM4nQ1wE5rT9yU7iO' },
  deliveryId: { description: 'The delivery.', schema: id('dlv'), example: 'dlv_7gH1jK3lP5oI9uY2tR6eW4qZ' },
  exportId: { description: 'The export.', schema: id('exp'), example: 'exp_1aB2cD3eF4gH5iJ6kL7mN8oP' },
  deletionId: { description: 'The deletion.', schema: id('del'), example: 'del_1aB2cD3eF4gH5iJ6kL7mN8oP' },
  checkoutId: { description: 'The checkout.', schema: id('cs'), example: 'cs_3sD5fG7hJ9kL1qW2eR4tY6uI' },
};

/** As the wire writes names: `requestId` is `request_id`. */
export function wireName(param: string): string {
  return param.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** As OpenAPI writes paths: `/chat/{request_id}`. */
export function templateOf(path: string): string {
  return path.replaceAll(/:(\w+)/g, (_whole, name: string) => `{${wireName(name)}}`);
}
