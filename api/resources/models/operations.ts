import { json } from '../../openapi/operation.ts';
import type { OperationsOf } from '../../openapi/operation.ts';
import { ref } from '../../openapi/schema.ts';

/** What the document tells of `GET /models`. */
export const modelsOperations: OperationsOf<'listModels'> = {
  listModels: {
    tag: 'Models',
    summary: 'List the model tiers',
    description: "In the form of OpenAI's list. Every valid key may read it.",
    answers: { 200: json('The tiers.', ref('ModelList')) },
    examples: {
      all: {
        status: 200,
        answer: {
          object: 'list',
          data: [
            { id: 'mobius', object: 'model', created: 1_795_219_200, owned_by: 'parley' },
            { id: 'oloid', object: 'model', created: 1_795_219_200, owned_by: 'parley' },
          ],
        },
      },
    },
  },
};
