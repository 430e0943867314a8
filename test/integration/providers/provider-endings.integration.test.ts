import { describe, expect, it, jest } from '@jest/globals';

import { createAdapters } from '../../../workers/open-pipeline.ts';
import { ProviderError } from '../../../workers/providers/provider.ts';
import type { ProviderCall } from '../../../workers/providers/provider.ts';
import {
  CODINGS,
  COUNTED,
  EMPTY_EVENTS,
  OPENAI_USAGE,
  WHOLE_TEXT,
  coded,
  documentOf,
  oddDocument,
  oddStream,
  streamOf,
  writeOdd,
} from '../../support/odd-answers.ts';
import type { EndOfBody, OddAnswer, Protocol, WireEvent } from '../../support/odd-answers.ts';
import { callOf, providerOf, readEvents } from '../../support/provider-call.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';

/** A shorter wait than in production, for ends that never come; longer than the pauses between the parts of an answer. */
const END_WAIT_MS = 100;
/** Gives a call up, this long after the last byte, that would wait for ever; longer than the wait above. */
const GIVE_UP_MS = 250;

const PROTOCOLS: Protocol[] = ['openai', 'anthropic'];
const RUDE_ENDS: EndOfBody[] = ['held', 'cut', 'reset'];
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const PROCESSING = 'HTTP/1.1 102 Processing\r\nx-a: b\r\n\r\n';
const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
const LABELS = ['application/json', 'text/event-stream', 'text/plain', 'text/html', 'application/octet-stream', ''];

const has = (events: readonly WireEvent[], what: string) =>
  events.some(({ gives }) => gives?.split(' and ').includes(what) === true);

describe('a right answer with one deformation', () => {
  const { server, http } = useScriptedServer();

  async function ask(protocol: Protocol, answer: OddAnswer, more: Partial<ProviderCall> = {}) {
    const controller = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const giveUp = () => {
      controller.abort(new ProviderError('silent', 'given up'));
    };
    server.answer((res) => {
      void writeOdd(res, answer).then(() => {
        if (answer.end === 'held') timer = setTimeout(giveUp, GIVE_UP_MS);
      });
    });
    const wait = answer.end === 'held' ? { endWaitMs: END_WAIT_MS } : {};
    const call = callOf({ ...wait, signal: controller.signal, ...more });
    const { events, failure } = await readEvents((sink) =>
      createAdapters(http)[protocol].generate(providerOf(protocol, `${server.url}/v1`), call, sink),
    );
    clearTimeout(timer);
    const text = events.flatMap((event) => (event.kind === 'text' ? event.text : [])).join('');
    return { text, end: events.find((event) => event.kind === 'end'), failure };
  }

  const whole = (finishReason = 'stop', isCounted = true) => ({
    text: WHOLE_TEXT,
    end: { kind: 'end', finishReason, usage: isCounted ? COUNTED : undefined, model: undefined },
    failure: undefined,
  });

  /** The rule: whole text and a finish reason are a success, anything else is the typed error. */
  async function expectByRule(protocol: Protocol, sent: readonly WireEvent[], answer: OddAnswer) {
    const read = await ask(protocol, answer);
    if (has(sent, 'text') && has(sent, 'finish')) {
      expect(read).toEqual(whole('stop', has(sent, 'usage')));
    } else {
      expect(read.failure).toBeInstanceOf(ProviderError);
      expect(read.end).toBeUndefined();
    }
  }

  describe.each(PROTOCOLS)('a stream of %s', (protocol) => {
    const right = streamOf(protocol);
    const positions = right.map((_event, at) => at);

    it('as it is', async () => {
      expect(await ask(protocol, oddStream(right))).toEqual(whole());
    });

    describe.each(RUDE_ENDS)('is %s', (end) => {
      it.each(positions)('behind event %d', async (at) => {
        const sent = right.slice(0, at + 1);

        await expectByRule(protocol, sent, oddStream(sent, { end }));
      });

      it.each(positions)('in the middle of event %d', async (at) => {
        const sent = right.slice(0, at);
        const half = (right[at]?.wire ?? '').slice(0, 20);

        await expectByRule(protocol, sent, oddStream([...sent, { wire: half }], { end }));
      });
    });

    it.each(positions)('ends behind event %d', async (at) => {
      const sent = right.slice(0, at + 1);

      await expectByRule(protocol, sent, oddStream(sent));
    });

    it.each(positions.flatMap((at) => ['', '\n', '\r', '\r\n'].map((end) => [at, end] as const)))(
      'ends behind event %d without its blank line, with %j',
      async (at, lineEnd) => {
        const sent = right.slice(0, at + 1);
        const wires = sent.map(({ wire }, index) => (index === at ? wire.trimEnd() + lineEnd : wire));

        await expectByRule(protocol, sent, oddStream(sent, { body: wires }));
      },
    );

    it.each(positions)('has no blank line behind event %d', async (at) => {
      const body = right.map(({ wire }, index) => (index === at ? `${wire.trimEnd()}\n` : wire));

      expect(await ask(protocol, oddStream(right, { body }))).toEqual(whole());
    });

    it.each(positions.flatMap((at) => EMPTY_EVENTS.map((event) => [event, at] as const)))(
      'has %j before event %d',
      async (event, at) => {
        const body = right.map(({ wire }) => wire).toSpliced(at, 0, event);

        expect(await ask(protocol, oddStream(right, { body }))).toEqual(whole());
      },
    );

    it.each(positions)('has an event that does not parse before event %d', async (at) => {
      const body = right.map(({ wire }) => wire).toSpliced(at, 0, 'data: {"choices":[{"delta":\n\n');

      await expectByRule(protocol, right.slice(0, at), oddStream(right, { body }));
    });

    it.each(positions)('has an error named so before event %d', async (at) => {
      const body = right.map(({ wire }) => wire).toSpliced(at, 0, 'event: error\ndata: {"message":"overloaded"}\n\n');

      await expectByRule(protocol, right.slice(0, at), oddStream(right, { body }));
    });

    it.each(['data: [DONE]\n\n', 'data:  [DONE] \r\n\r\n', 'data: [DONE]'])('ends with %j', async (last) => {
      const body = [...right.slice(0, -1).map(({ wire }) => wire), last];

      expect(await ask(protocol, oddStream(right, { body }))).toEqual(whole());
    });

    it.each(['\r', '\r\n'])('has %j for line ends', async (lineEnd) => {
      const body = right.map(({ wire }) => wire.replaceAll('\n', lineEnd));

      expect(await ask(protocol, oddStream(right, { body }))).toEqual(whole());
    });

    it('comes in one piece, and byte by byte', async () => {
      const all = right.map(({ wire }) => wire).join('');

      expect(await ask(protocol, oddStream(right, { body: [all] }))).toEqual(whole());
      expect(
        await ask(protocol, oddStream(right, { body: [...Buffer.from(all)].map((byte) => Buffer.of(byte)) })),
      ).toEqual(whole());
    });

    it('has a character cut at its very end', async () => {
      const body = [...right.map(({ wire }) => wire), Buffer.from('data: é').subarray(0, -1)];

      expect(await ask(protocol, oddStream(right, { body }))).toEqual(whole());
    });

    describe.each([true, false])('to a call with stream %s', (stream) => {
      it.each(LABELS.flatMap((label) => ['', '\n\n', '\ufeff', '\ufeff\n'].map((first) => [label, first] as const)))(
        'is labelled %j and begins with %j',
        async (label, first) => {
          const headers: Record<string, string> = label === '' ? {} : { 'content-type': label };
          const body = [...(first === '' ? [] : [first]), ...right.map(({ wire }) => wire)];

          expect(await ask(protocol, { headers, body }, { stream })).toEqual(whole());
        },
      );

      it.each(CODINGS)('is in %s', async (coding) => {
        expect(await ask(protocol, coded(oddStream(right), coding), { stream })).toEqual(whole());
      });
    });

    it.each([
      [[CONTINUE]],
      [[PROCESSING]],
      [[HINTS]],
      [[CONTINUE, CONTINUE]],
      [[CONTINUE + CONTINUE]],
      [[CONTINUE, PROCESSING + HINTS + CONTINUE]],
      [Array.from(CONTINUE)],
    ])('comes behind %j', async (interim) => {
      expect(await ask(protocol, oddStream(right, { interim }))).toEqual(whole());
    });
  });

  describe.each(PROTOCOLS.flatMap((protocol) => [true, false].map((stream) => [protocol, stream] as const)))(
    'a document of %s to a call with stream %s',
    (protocol, stream) => {
      const right = documentOf(protocol);
      const json = JSON.stringify(right);

      it.each(RUDE_ENDS)('is whole, and its connection is %s', async (end) => {
        expect(await ask(protocol, oddDocument(right, { end }), { stream })).toEqual(whole());
      });

      it.each(RUDE_ENDS)('is not whole where its connection is %s', async (end) => {
        for (const at of [1, 20, json.length - 1]) {
          const { failure, end: ended } = await ask(protocol, { body: [json.slice(0, at)], end }, { stream });
          expect(failure).toMatchObject({ name: 'ProviderError', isRefusal: false });
          expect(ended).toBeUndefined();
        }
      });

      it.each(LABELS.flatMap((label) => ['', '\n\n', '\ufeff', '\ufeff \n'].map((first) => [label, first] as const)))(
        'is labelled %j and begins with %j',
        async (label, first) => {
          const headers: Record<string, string> = label === '' ? {} : { 'content-type': label };

          expect(await ask(protocol, { headers, body: [first, json] }, { stream })).toEqual(whole());
          expect(await ask(protocol, { headers, body: [first + json] }, { stream })).toEqual(whole());
        },
      );

      it.each(CODINGS)('is in %s, and comes with a sign of life', async (coding) => {
        const onBytes = jest.fn();
        const answer = coded(oddDocument(right, { status: 201 }), coding);

        expect(await ask(protocol, answer, { stream, onBytes })).toEqual(whole());
        expect(onBytes).toHaveBeenCalled();
      });

      it('is white space for now, which is a sign of life', async () => {
        const onBytes = jest.fn();

        await ask(protocol, { body: ['\n'] }, { stream, onBytes });
        expect(onBytes).toHaveBeenCalledTimes(1);
      });

      const callAt = (url: string) =>
        readEvents((sink) =>
          createAdapters(http)[protocol].generate(providerOf(protocol, `${url}/v1`), callOf({ stream }), sink),
        );

      it('is none where there is no content', async () => {
        server.answer((res) => res.writeHead(204).end());

        expect((await callAt(server.url)).failure).toMatchObject({ fault: 'transient' });
      });

      it('may cost where the connection is cut before it; a provider that is not reached has done nothing', async () => {
        server.answer((res) => res.socket?.resetAndDestroy());

        expect((await callAt(server.url)).failure).toMatchObject({ fault: 'transient', isRefusal: false });
        expect((await callAt('http://127.0.0.1:1')).failure).toMatchObject({ fault: 'transient', isRefusal: true });
      });

      it.each([[[CONTINUE]], [[PROCESSING]], [[HINTS, CONTINUE]], [[CONTINUE + CONTINUE]]])(
        'comes behind %j',
        async (interim) => {
          expect(await ask(protocol, oddDocument(right, { interim }), { stream })).toEqual(whole());
        },
      );

      it.each([[{ message: '', type: '', param: '', code: null }], [{}], [''], [false], [0], [null]])(
        'has the error %j, which says nothing',
        async (error) => {
          expect(await ask(protocol, oddDocument({ ...right, error }), { stream })).toEqual(whole());
        },
      );

      it.each(LABELS)('is an error labelled %j, whose word decides', async (label) => {
        const headers: Record<string, string> = label === '' ? {} : { 'content-type': label };
        const body = ['\ufeff{"type":"error","error":{"type":"invalid_request_error","message":"canary"}}'];

        const { failure } = await ask(protocol, { headers, body }, { stream });
        expect(failure).toMatchObject({ fault: 'caller', isRefusal: true });
      });

      it.each([undefined, ...CODINGS])('is an error status with a body in %s, whose word decides', async (coding) => {
        const body = ['\ufeff{"error":{"code":"insufficient_quota","message":"canary"}}'];
        const refused: OddAnswer = { status: 429, interim: [CONTINUE], body };
        const answer = coding === undefined ? refused : coded(refused, coding);

        const { failure } = await ask(protocol, answer, { stream });
        expect(failure).toMatchObject({ fault: 'refused', status: 429, isRefusal: true });
      });

      it.each(RUDE_ENDS)('is an error status whose connection is %s behind its body', async (end) => {
        const answer: OddAnswer = { status: 429, body: ['{"error":{"code":"insufficient_quota"}}'], end };

        expect((await ask(protocol, answer, { stream })).failure).toMatchObject({ fault: 'refused', status: 429 });
      });
    },
  );

  describe('usage of a stream of openai', () => {
    const right = streamOf('openai');
    const usage = `data: ${JSON.stringify({ choices: [], usage: OPENAI_USAGE })}\n\n`;
    const others = right.filter(({ gives }) => gives !== 'usage');
    const places = others.map((_event, at) => at);

    it.each([...places, others.length])('stands before event %d', async (at) => {
      const body = others.map(({ wire }) => wire).toSpliced(at, 0, usage);

      expect(await ask('openai', oddStream(right, { body }))).toEqual(whole());
    });

    it.each([...places, others.length])('has no list of choices before event %d', async (at) => {
      const body = others.map(({ wire }) => wire).toSpliced(at, 0, usage.replace('"choices":[],', ''));

      expect(await ask('openai', oddStream(right, { body }))).toEqual(whole());
    });

    it.each(RUDE_ENDS)('behind [DONE] is read, where the connection is %s behind it, too', async (end) => {
      const body = [...others.map(({ wire }) => wire), usage];

      expect(await ask('openai', oddStream(right, { body, end }))).toEqual(whole());
    });
  });
});
