import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { hasText, isWhole, none, range } from './findings.ts';
import { routeTo } from './routes.ts';

const WELL = 'sim?chunks=8&chunk_ms=5';
/** How the first of three targets fails; `cuts`: with text before it, so that nobody can take its place in a stream. */
const WAYS = [
  { name: 'answers 500', model: 'sim?fail=status&status=500' },
  { name: 'answers 429', model: 'sim?fail=status&status=429&retry_after=1' },
  { name: 'answers 401', model: 'sim?fail=status&status=401' },
  { name: 'is reset before text', model: 'sim?fail=reset&fail_after=0' },
  { name: 'ends before text', model: 'sim?fail=truncate&fail_after=0' },
  { name: 'is malformed before text', model: 'sim?fail=malformed&fail_after=0' },
  { name: 'is silent', model: 'sim?fail=stall&fail_after=0' },
  { name: 'says no usage', model: 'sim?usage=absent&chunks=8&chunk_ms=5' },
  { name: 'is cut after 3 chunks', model: 'sim?fail=reset&fail_after=3&chunks=8&chunk_ms=5', cuts: true },
  { name: 'is malformed after 3 chunks', model: 'sim?fail=malformed&fail_after=3&chunks=8&chunk_ms=5', cuts: true },
] as const;
const AT_ONCE = 20;

/** E10. Three targets of one priority, of which one fails in each way in turn. */
export const providersBreak: Experiment = {
  name: 'E10',
  title: 'one provider of three fails in ten ways, 1,000 requests',
  lab: { provider: 'echo=1', workers: 4 },
  async run(lab, size) {
    const tenant = await lab.openTenant(10_000_000);
    const each = size === 'full' ? 100 : 20;
    const byWay = new Map<string, SentRequest[]>();
    for (const [number, way] of WAYS.entries()) {
      // Each way has a provider of its own, so that none begins with the breaker that the last one opened.
      const bad = `bad-${number}`;
      const routes = [
        { provider: bad, model: way.model },
        { provider: 'good-1', model: WELL },
        { provider: 'good-2', model: WELL },
      ];
      await routeTo(lab, routes, { first_token_timeout_ms: 1_000, timeout_ms: 5_000 });
      const sent: SentRequest[] = [];
      byWay.set(way.name, sent);
      for (let from = 0; from < each; from += AT_ONCE) {
        const group = range(Math.min(AT_ONCE, each - from), (index) =>
          lab.caller.send({ url: lab.urlOf(index), tenant, stream: index % 2 === 0 }),
        );
        sent.push(...group);
        await Promise.all(group.map((request) => request.ended));
      }
    }
    const isReplaced = (way: (typeof WAYS)[number], request: SentRequest) => !('cuts' in way) || !request.stream;
    return {
      figures: { ways: WAYS.length },
      verdicts: [
        ...WAYS.map((way) =>
          none(
            `all are answered where a provider ${way.name}`,
            (byWay.get(way.name) ?? []).filter((request) => isReplaced(way, request) && !isWhole(request)),
          ),
        ),
        none(
          'a stream that has text ends whole or with the typed error',
          WAYS.filter((way) => 'cuts' in way)
            .flatMap((way) => byWay.get(way.name) ?? [])
            .filter((request) => !isWhole(request))
            .filter((request) => !hasText(request) || request.last().errorCode !== 'model_unavailable'),
        ),
      ],
    };
  },
};
