import { describe, expect, it } from '@jest/globals';

import type { ClientRequest, Reading } from '../../fault/checker/evidence.ts';
import { brokenBy, soundEvidence, spoilReading, streamReading, usageLine } from './sound-evidence.ts';
import type { Spoiled } from './sound-evidence.ts';

function readingsOf(evidence: Spoiled): readonly Reading[] {
  return evidence.requests[0]?.readings ?? [];
}

function replaceReadings(evidence: Spoiled, readings: Reading[]): void {
  const [first, ...others] = evidence.requests;
  // `soundEvidence` has three requests.
  evidence.requests = [{ ...(first as ClientRequest), readings }, ...others];
}

it('finds nothing where nothing is wrong', () => {
  expect(brokenBy(() => undefined)).toEqual([]);
});

describe('I1', () => {
  it('finds a stream that the service closed without its last event', () => {
    const cut = (evidence: Spoiled) => {
      const events = readingsOf(evidence)[0]?.events.slice(0, 1) ?? [];
      spoilReading(evidence, { events, finishReason: undefined, usage: undefined, isDone: false });
    };
    expect(brokenBy(cut)).toEqual(['I1']);
  });

  it('finds a second last event, on the same connection or on the one that resumes', () => {
    const twice = (evidence: Spoiled) => {
      const events = readingsOf(evidence)[0]?.events ?? [];
      const extra = events.slice(1).map((event, index) => ({ ...event, seq: 4 + index }));
      spoilReading(evidence, { events: [...events, ...extra] });
    };
    const resumed = (evidence: Spoiled) => {
      const again = streamReading('req_a', '', { events: [] });
      replaceReadings(evidence, [...readingsOf(evidence), again]);
    };
    expect(brokenBy(twice)).toEqual(['I1']);
    expect(brokenBy(resumed)).toEqual(['I1']);
  });

  it.each([
    ['a gap', [1, 3, 4]],
    ['a repeated event', [1, 1, 2]],
  ])('I1 finds %s in the sequence', (_, seqs) => {
    const renumber = (evidence: Spoiled) => {
      const events = readingsOf(evidence)[0]?.events ?? [];
      spoilReading(evidence, { events: events.map((event, index) => ({ ...event, seq: seqs[index] ?? 0 })) });
    };
    expect(brokenBy(renumber)).toEqual(['I1']);
  });

  it('finds a request that is still open, and [DONE] after an error', () => {
    expect(
      brokenBy((evidence) => {
        spoilReading(evidence, { end: 'open' });
      }),
    ).toEqual(['I1']);
    expect(
      brokenBy((evidence) => {
        spoilReading(evidence, { errorCode: 'model_unavailable' });
      }),
    ).toEqual(['I1']);
  });

  it.each([
    ['runs at rest', { state: 'running' }],
    ['has no terminal entry', { terminals: 0 }],
    ['has two terminal entries', { terminals: 2 }],
    ['is void though it was answered', { state: 'void' }],
  ])('I1 finds a record that %s', (_, change) => {
    expect(
      brokenBy((evidence) => {
        evidence.records = evidence.records?.map((record, index) => (index === 0 ? { ...record, ...change } : record));
      }),
    ).toEqual(['I1']);
  });

  it('finds an answered request without a record, but not where records were left to expire', () => {
    expect(
      brokenBy((evidence) => {
        evidence.records = evidence.records?.slice(1);
      }),
    ).toEqual(['I1']);
    expect(
      brokenBy((evidence) => {
        evidence.records = undefined;
      }),
    ).toEqual([]);
  });

  it('lets a client leave without a last event, and asks for one where it came back', () => {
    const open = { finishReason: undefined, usage: undefined, isDone: false };
    const firstEvent = (evidence: Spoiled) => readingsOf(evidence)[0]?.events.slice(0, 1) ?? [];
    const leave = (evidence: Spoiled) => {
      spoilReading(evidence, { ...open, events: firstEvent(evidence), end: 'left' });
    };
    const comeBack = (evidence: Spoiled) => {
      leave(evidence);
      replaceReadings(evidence, [...readingsOf(evidence), streamReading('req_a', '', { ...open, events: [] })]);
    };
    expect(brokenBy(leave)).toEqual([]);
    expect(brokenBy(comeBack)).toEqual(['I1']);
  });
});

describe('I2', () => {
  it('I2 finds two entries of one request', () => {
    const broken = brokenBy((evidence) => {
      evidence.ledger = [...evidence.ledger, usageLine('req_a', { amountMicro: 0 })];
    });
    expect(broken).toContain('I2');
  });

  it('I2 finds text that nobody was billed for', () => {
    const broken = brokenBy((evidence) => {
      evidence.ledger = evidence.ledger.filter(({ requestId }) => requestId !== 'req_a');
    });
    expect(broken).toEqual(['I2', 'I4']);
  });

  it('asks for no entry of what was admitted although its caller was told 503', () => {
    const runRefused = (status: number) =>
      brokenBy((evidence) => {
        const records = evidence.records ?? [];
        evidence.records = [...records, ...records.slice(0, 1).map((one) => ({ ...one, requestId: 'req_refused' }))];
        evidence.requests = evidence.requests.map((request) => ({
          ...request,
          readings: request.readings.map((reading) => (reading.status === 503 ? { ...reading, status } : reading)),
        }));
      });
    expect(runRefused(503)).not.toContain('I2');
    expect(runRefused(429)).toContain('I2');
  });

  it('finds an entry of a request that produced none, and of one that was refused', () => {
    const broken = brokenBy((evidence) => {
      evidence.ledger = [...evidence.ledger, usageLine('req_refused', { amountMicro: 0, mode: 'test' })];
      evidence.provider = new Map([
        ...evidence.provider,
        ['req_refused', { calls: 1, promptTokens: 10, completionTokens: 8 }],
      ]);
    });
    expect(broken).toEqual(['I2']);
  });
});

describe('I3', () => {
  function chargeInstead(change: Parameters<typeof usageLine>[1]): string[] {
    return brokenBy((evidence) => {
      evidence.ledger = evidence.ledger.map((line) => (line.requestId === 'req_a' ? { ...line, ...change } : line));
    });
  }

  it('finds a charge that is not tokens times rate', () => {
    expect(chargeInstead({ amountMicro: -17_000_000 })).toEqual(['I3', 'I4']);
    expect(chargeInstead({ mode: 'test' })).toEqual(['I3']);
  });

  it('finds other tokens than the provider counted, unless flagged as an estimate, and an estimate out of all reason', () => {
    const told = (completionTokens: number, isEstimated: boolean) =>
      brokenBy((evidence) => {
        evidence.ledger = evidence.ledger.map((line) =>
          line.requestId === 'req_a'
            ? { ...line, completionTokens, isEstimated, amountMicro: -(10 + completionTokens) * 1_000_000 }
            : line,
        );
        evidence.accounts = evidence.accounts.map((account) => {
          const balance = account.balanceMicro - (completionTokens - 8) * 1_000_000;
          return { ...account, balanceMicro: balance, ledgerMicro: balance };
        });
        spoilReading(evidence, { usage: { prompt: 10, completion: completionTokens } });
      });
    expect(told(9, false)).toEqual(['I3']);
    expect(told(9, true)).toEqual([]);
    expect(told(60, true)).toEqual(['I3']);
  });

  it('takes an estimate of dense text, of which the provider counts a fraction, for right', () => {
    const chargeDense = (tokens: number) =>
      brokenBy((evidence) => {
        evidence.ledger = evidence.ledger.map((line) =>
          line.requestId === 'req_a' ? { ...line, isEstimated: true } : line,
        );
        const text = soundEvidence().requests[0]?.expectedText ?? '';
        const answer = { text, isWhole: true, tokens };
        evidence.provider = new Map([
          ...evidence.provider,
          ['req_a', { calls: 1, promptTokens: 10, completionTokens: -10, answer }],
        ]);
      });
    expect(chargeDense(8)).toEqual([]);
    expect(chargeDense(7)).toEqual(['I3']);
  });

  it('finds a client that was told something else', () => {
    expect(
      brokenBy((evidence) => {
        spoilReading(evidence, { usage: { prompt: 10, completion: 7 } });
      }),
    ).toEqual(['I3']);
  });

  it('finds a charge for a request that the provider never saw', () => {
    expect(
      brokenBy((evidence) => {
        evidence.provider = new Map();
      }),
    ).toEqual(['I3']);
  });
});

describe('I4', () => {
  it.each([
    ['a hold', { leftovers: { held: 1 } }],
    ['a balance that is not grants less charges', { balanceMicro: 65_000_000, ledgerMicro: 65_000_000 }],
    ['a Redis that says something else than MongoDB', { ledgerMicro: 0 }],
  ])('I4 finds %s', (_, change) => {
    const broken = brokenBy((evidence) => {
      evidence.accounts = evidence.accounts.map((account) => ({ ...account, ...change }));
    });
    expect(broken).toEqual(['I4']);
  });

  it('finds drift that reconciliation reports', () => {
    const broken = brokenBy((evidence) => {
      evidence.reconciliation = { exitCode: 1, output: 'shard 0: 1 tenants, drift is left' };
    });
    expect(broken).toEqual(['I4']);
  });
});

describe('I5', () => {
  it('finds another request’s canary, also where the answer is not known beforehand', () => {
    const text = 'Kingfisher-river-river-garden says';
    const mixed = (evidence: Spoiled) => {
      spoilReading(evidence, { text });
      evidence.requests = evidence.requests.map((request) => ({ ...request, expectedText: undefined }));
    };
    expect(brokenBy(mixed)).toContain('I5');
  });

  it('finds text that repeats itself, and a completed answer that lacks its end', () => {
    const [prompt] = soundEvidence().requests.map(({ expectedText = '' }) => expectedText);
    expect(
      brokenBy((evidence) => {
        spoilReading(evidence, { text: `${prompt ?? ''}${prompt ?? ''}` });
      }),
    ).toContain('I5');
    expect(
      brokenBy((evidence) => {
        spoilReading(evidence, { text: 'Kingfisher-river-river-river says' });
      }),
    ).toContain('I5');
  });
});

describe('I6, I7, I8', () => {
  it('find a process that ended by itself, or otherwise than it was told', () => {
    const exit = { name: 'worker-2', how: 'exit code 1' };
    expect(
      brokenBy((evidence) => {
        evidence.exits = [{ ...exit, planned: undefined }];
      }),
    ).toEqual(['I6']);
    expect(
      brokenBy((evidence) => {
        evidence.exits = [{ ...exit, planned: 'exit code 0' }];
      }),
    ).toEqual(['I6']);
  });

  it('I6, I7, I8 find what is left in a queue', () => {
    expect(
      brokenBy((evidence) => {
        evidence.queues = { wait: 0, outbox: 1 };
      }),
    ).toEqual(['I7']);
  });

  it.each([
    ['a secret', 'Authorization: an-administrator-token-of-tests-0123456789'],
    ['conversation text', '{"message":"Kingfisher-river-river-river says"}'],
  ])('I6, I7, I8 find %s in a log', (_, text) => {
    expect(
      brokenBy((evidence) => {
        evidence.logs = [{ name: 'ingress-1.log', text }];
      }),
    ).toEqual(['I8']);
  });
});

describe('what Redis has lost with its last second', () => {
  const forget = (told: Partial<Reading>) =>
    brokenBy((evidence) => {
      evidence.records = evidence.records?.slice(1);
      evidence.ledger = evidence.ledger.filter(({ requestId }) => requestId !== 'req_a');
      evidence.accounts = evidence.accounts.map((account) => ({
        ...account,
        balanceMicro: 82_000_000,
        ledgerMicro: 82_000_000,
      }));
      evidence.forgotten = new Set(['req_a']);
      spoilReading(evidence, told);
    });

  it('needs neither record nor charge where its caller was told, and a charge where it was answered', () => {
    const events = [
      { seq: 1, data: '{}', at: 2 },
      { seq: 2, data: '{"choices":[{"finish_reason":"error"}]}', at: 3 },
    ];
    expect(forget({ events, errorCode: 'model_unavailable', finishReason: 'error', isDone: false })).toEqual([]);
    expect(forget({})).toEqual(['I2']);
  });
});
