import { ask, range, settledStatement } from '../lab.ts';
import { rounded, verdict } from '../measure.ts';
import type { Measure } from '../measure.ts';

const REQUESTS = 200;
const ANSWERS = 3;
const TOKENS = 300;
const RICH = 1_000_000;
const QUESTION = { content: 'Tell the story of a river.', stream: false, maxTokens: TOKENS } as const;

export const exactBudget: Measure = {
  name: 'budget',
  title: `${REQUESTS} requests at once with a balance for ${ANSWERS}`,
  needs: ['accounts'],
  async run(lab) {
    const { system, provider } = lab;
    await provider.set({ tokens: TOKENS, first_token_ms: 500 });
    const rich = await system.openAccount({ tokens: RICH });
    const first = await ask(lab, { account: rich }, QUESTION);
    if (first.tokens === undefined) throw new Error(`${system.name} answered ${first.status} without a usage.`);
    const granted = ANSWERS * first.tokens;

    const account = await system.openAccount({ tokens: granted });
    const before = (await provider.counts()).tokens;
    const replies = await Promise.all(range(REQUESTS, (index) => ask(lab, { account, index }, QUESTION)));
    const produced = (await provider.counts()).tokens - before;
    const { charged } = await settledStatement(lab, account);
    return {
      figures: {
        granted: granted,
        answered: replies.filter(({ status }) => status === 200).length,
        charged,
        'charged of granted': `${rounded((charged / granted) * 100)} %`,
        'produced by the provider': produced,
      },
      verdicts: [
        verdict('no more is charged than was granted', charged <= granted, `${charged} of ${granted} tokens`),
        verdict('no more is produced than was granted', produced <= granted, `${produced} of ${granted} tokens`),
        verdict(
          'some are answered',
          replies.some(({ isWhole }) => isWhole),
          'none',
        ),
      ],
    };
  },
};
