import type { Experiment } from '../experiment.ts';
import { countRefused, none, range } from './findings.ts';

const TOKENS = 300;
const CHUNKS = 60;
const CHUNK_MS = 100;
/** workers/pipeline/claim.ts: how often a running request raises its hold. */
const RENEWAL_MS = 3_000;
/** Output that a request may produce between two renewals, and half as much again for timers that come late. */
const INTERVAL_TOKENS = Math.ceil((TOKENS / (CHUNKS * CHUNK_MS)) * RENEWAL_MS * 1.5);
const PROMPT_TOKENS = 40;
const MICRO = 1_000_000;
/** The key's answers were short so far, so that admission expects short ones and lets in more than the balance pays. */
const SHORT_TOKENS = 20;
const SHORT_ANSWERS = 16;
/** Of the tier that they are asked of. */
const SHORT_PRICE = (SHORT_TOKENS + PROMPT_TOKENS) * 4;

/** E7. */
export const smallBalance: Experiment = {
  name: 'E7',
  title: '200 parallel requests with a balance for 3',
  lab: {
    models: {
      mobius: `sim?tokens=${TOKENS}&chunks=${CHUNKS}&chunk_ms=${CHUNK_MS}`,
      oloid: `sim?tokens=${SHORT_TOKENS}`,
    },
  },
  async run(lab, size) {
    const balance = 3 * (TOKENS + PROMPT_TOKENS);
    const tenant = await lab.openTenant(balance + SHORT_ANSWERS * SHORT_PRICE);
    for (let index = 0; index < SHORT_ANSWERS; index += 1) {
      const call = { url: lab.urlOf(index), tenant, words: 8, isEchoed: false, stream: false, model: 'oloid' as const };
      await lab.caller.send(call).ended;
    }
    const requests = range(size === 'full' ? 200 : 40, (index) =>
      lab.caller.send({ url: lab.urlOf(index), tenant, words: 8, isEchoed: false, stream: index % 2 === 0 }),
    );
    await lab.untilEnded();

    const answered = requests.filter((sent) => sent.last().status === 200);
    return {
      figures: { balance, admitted: answered.length, refused: countRefused(requests) },
      verdicts: [
        none(
          'the rest is 402, or ends with length',
          requests.filter(({ last }) => {
            const { status, errorCode, finishReason } = last();
            if (status === 402) return errorCode !== 'insufficient_credits';
            return finishReason !== 'stop' && finishReason !== 'length';
          }),
        ),
        { name: 'somebody is answered', faults: answered.length === 0 ? ['nobody'] : [] },
      ],
      judge: ({ ledger }) => {
        const usage = ledger.filter(({ type }) => type === 'usage');
        const creditsOf = (tier: string) =>
          usage.filter((line) => line.tier === tier).reduce((sum, { amountMicro }) => sum - amountMicro, 0) / MICRO;
        const charged = creditsOf('mobius');
        const paid = balance + SHORT_ANSWERS * SHORT_PRICE - creditsOf('oloid');
        const most = paid + usage.filter(({ tier }) => tier === 'mobius').length * INTERVAL_TOKENS;
        return [
          {
            name: 'charges are at most the balance and one renewal interval a request',
            faults: charged <= most ? [] : [`${charged} of ${paid} credits, at most ${most}`],
          },
        ];
      },
    };
  },
};
